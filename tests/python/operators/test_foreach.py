"""The _foreach operators: as on the CPU, and one launch for 16 tensors."""

import math

import pytest
import torch
from torch.testing import assert_close

# Over lists, but products: PyTorch's loop runs them.
LOOPED = {"_foreach_mm"}
# Other dtypes than float32 and int64 reach every kind of operand through these.
SEVERAL = {"add", "mul", "div", "maximum", "addcmul", "lerp", "abs", "sqrt", "copy", "zero"}
SHAPES = [(3,), (0,), (4, 5), (), (20001,), (2, 3, 2), *[(k,) for k in range(1, 15)]]
LIST = 16  # tensors that one launch takes


def overloads():
    found = {}
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name.removeprefix("aten::")
        # The form with out= copies from the one without.
        if name.startswith("_foreach_") and not schema.overload_name.endswith("out"):
            found[f"{name}.{schema.overload_name}".rstrip(".")] = schema
    return found


OVERLOADS = overloads()
NATIVE = [key for key in OVERLOADS if key.split(".")[0] not in LOOPED | {"_foreach_copy"}]


def drawn(shapes, dtype, seed):
    source = torch.Generator().manual_seed(seed)
    if dtype.is_floating_point or dtype.is_complex:
        return [torch.randn(shape, generator=source).mul(0.6).to(dtype) for shape in shapes]
    return [torch.randint(1, 9, shape, generator=source).to(dtype) for shape in shapes]


def arguments(key, shapes, dtype, device):
    """Arguments for a schema: lists and numbers of its own for each parameter."""
    whole = not (dtype.is_floating_point or dtype.is_complex)
    given, named = [], {}
    for seed, argument in enumerate(OVERLOADS[key].arguments):
        kind = str(argument.type)
        if kind == "List[Tensor]":
            value = [t.to(device) for t in drawn(shapes, dtype, seed)]
        elif kind == "List[number]":
            value = [k + 1 if whole else 0.3 * k + 0.1 for k in range(len(shapes))]
        elif argument.name == "ord":
            value = argument.default_value
        elif kind == "number":
            value = 2 if whole else 0.7
        elif kind == "Tensor" and argument.name == "scalars":
            value = torch.linspace(1, 4, len(shapes)).to(dtype)
        elif kind == "Tensor":
            value = torch.tensor(2 if whole else 0.7, dtype=dtype, device=device)
        else:  # a flag, a dtype or a layout
            value = argument.default_value
        if argument.kwarg_only:
            named[argument.name] = value
        else:
            given.append(value)
    return given, named


def call(key, given, named):
    name, _, overload = key.partition(".")
    return getattr(getattr(torch.ops.aten, name), overload or "default")(*given, **named)


def outcome(key, shapes, dtype, device):
    """What the call returned or overwrote, on the CPU, and how often each input was written."""
    given, named = arguments(key, shapes, dtype, device)
    first = next(value for value in given if isinstance(value, list))
    try:
        result = call(key, given, named)
    except RuntimeError:
        return "refused", None
    tensors = first if result is None else result
    assert {t.device.type for t in tensors} == {torch.device(device).type}
    return [t.cpu() for t in tensors], [t._version for t in first]


def cases():
    for key in OVERLOADS:
        family = key.split(".")[0].removeprefix("_foreach_").rstrip("_")
        others = [torch.float64, torch.float16, torch.bfloat16] if family in SEVERAL else []
        yield from ((key, dtype) for dtype in [torch.float32, torch.int64, *others])


@pytest.mark.parametrize(("key", "dtype"), list(cases()), ids=str)
def test_computes_as_on_the_cpu(device, key, dtype):
    shapes = [(3, 3)] * 4 if key == "_foreach_mm" else SHAPES
    if key == "_foreach_max":
        shapes = [shape for shape in shapes if 0 not in shape]
    expected, wrote = outcome(key, shapes, dtype, "cpu")
    found, written = outcome(key, shapes, dtype, device)
    # Integers give float32 where they are promoted.
    loose = {torch.float64: 1e-7, torch.float16: 2e-3, torch.bfloat16: 2e-2}.get(dtype, 1e-5)
    if expected == "refused":
        assert found == "refused"
    else:
        assert_close(found, expected, rtol=loose, atol=loose, equal_nan=True)
        assert written == wrote


@pytest.mark.parametrize("key", NATIVE)
def test_is_one_launch_for_a_group_of_tensors(device, module, native, key):
    given, named = arguments(key, [(3,)] * 100, torch.float32, device)
    module.synchronize()
    before = module.statistics()["launches"]
    call(key, given, named)
    assert module.statistics()["launches"] - before == math.ceil(100 / LIST)


def launches(module, function, *given, **named):
    before = module.statistics()["launches"]
    result = function(*given, **named)
    return result, module.statistics()["launches"] - before


def on(device, list_):
    return [t.to(device) for t in list_]


def test_dense_tensors_of_any_order_share_a_launch(device, module):
    def pair(seed):
        source = torch.Generator().manual_seed(seed)
        image = torch.randn(2, 3, 4, 4, generator=source)
        return [torch.randn(4, 5, generator=source).t(),
                image.to(memory_format=torch.channels_last)]  # fmt: skip

    a, b = pair(1), pair(2)
    ours = [x.to(device) for x in a]
    assert [x.stride() for x in ours] == [x.stride() for x in a]
    found, count = launches(module, torch._foreach_mul, ours, on(device, b))
    assert count == 1
    assert [x.stride() for x in found] == [x.stride() for x in a]
    assert_close(on("cpu", found), torch._foreach_mul(a, b))


def test_members_may_have_gaps_and_orders_of_their_own(device):
    def lists(place):
        base = torch.arange(60.0).to(place)
        a = [base.clone().view(6, 10)[:, ::2], base.clone().view(6, 10).t(), base.clone()[:7]]
        b = [base.view(6, 10)[:, 1::2], base.view(10, 6), base[:1].expand(7)]
        return a, b

    expected, found = lists("cpu"), lists(device)
    for a, b in (expected, found):
        torch._foreach_add_(a, b, alpha=2)
        torch._foreach_sqrt_(a)
    assert_close(on("cpu", found[0]), expected[0])
    assert_close(on("cpu", torch._foreach_copy_(*found)), torch._foreach_copy_(*expected))


MIXED = [torch.ones(3), torch.ones(3).double(), torch.arange(3), torch.ones(2).bool(),
         torch.ones(2, dtype=torch.complex64), torch.ones(2).bfloat16()]  # fmt: skip


@pytest.mark.parametrize("number", [2, 0.5, True, 1 + 2j], ids=str)
@pytest.mark.parametrize("name", ["_foreach_add", "_foreach_mul", "_foreach_div", "_foreach_pow"])
def test_dtypes_are_promoted_as_on_the_cpu(device, name, number):
    operator = getattr(torch, name)
    lists = [[t] * 2 for t in MIXED] + [MIXED]
    for tensors in lists:
        expected = operator(tensors, number)
        assert_close(on("cpu", operator(on(device, tensors), number)), expected, equal_nan=True)


def test_numbers_beyond_the_dtype_are_refused_in_torch_cudas_words(device):
    operators = torch._foreach_add, torch._foreach_mul_, torch._foreach_clamp_min
    for dtype, number, name in (
        (torch.float32, 1e300, "float"),
        (torch.bfloat16, -1e39, "float"),
        (torch.int8, 300, "int8_t"),
        (torch.int32, 2**40, "int"),
    ):
        list_ = [torch.ones(3, dtype=dtype, device=device)] * 2
        for operator in operators:
            for given in (number, [1, number]):
                with pytest.raises(RuntimeError, match=f"to type {name} without overflow"):
                    operator(list_, given)


def test_numbers_stay_exact(device):
    for dtype, number in ((torch.int64, 2**62 + 1), (torch.float64, 1e300), (torch.float32, math.inf),
                          (torch.float16, 1000.0), (torch.bfloat16, math.nan)):  # fmt: skip
        list_ = [torch.ones(3, dtype=dtype)] * 2
        for operator in (torch._foreach_add, torch._foreach_mul, torch._foreach_maximum):
            found = operator(on(device, list_), number)
            assert_close(on("cpu", found), operator(list_, number), equal_nan=True, rtol=0, atol=0)


def test_lists_of_several_dtypes(device):
    a, b = MIXED[:3], MIXED[1:3] + MIXED[:1]
    for operator in (torch._foreach_add, torch._foreach_mul, torch._foreach_maximum):
        found = operator(on(device, a), on(device, b))
        assert_close(on("cpu", found), operator(a, b))


@pytest.mark.parametrize("where", ["cpu", "device"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.bool], ids=str)
def test_the_number_may_be_a_tensor(device, where, dtype):
    element = torch.tensor(3, dtype=dtype)
    ours = element.to(device) if where == "device" else element
    for list_ in (drawn([(3,), (2, 2)], torch.float32, 0), drawn([(), ()], torch.float32, 0)):
        for operator in (torch._foreach_mul, torch._foreach_add, torch._foreach_div):
            assert_close(on("cpu", operator(on(device, list_), ours)), operator(list_, element))
        found = torch._foreach_add(on(device, list_), ours, alpha=2)
        assert_close(on("cpu", found), torch._foreach_add(list_, element, alpha=2))


def test_a_list_may_hold_a_number_for_each_tensor(device, module, native):
    many = [*drawn([(3,), (2, 5), (0,), (70,)], torch.float32, 1)] * 9
    one = [t + 2 for t in drawn([()] * len(many), torch.float32, 2)]
    for operator in (torch._foreach_div, torch._foreach_mul, torch._foreach_maximum):
        found, count = launches(module, operator, on(device, many), on(device, one))
        assert count <= math.ceil(len(many) / LIST)
        assert_close(on("cpu", found), operator(many, one))
    for left, right in ((many, one), (one, many)):
        found = torch._foreach_addcmul(on(device, many), on(device, left), on(device, right))
        assert_close(on("cpu", found), torch._foreach_addcmul(many, left, right))
    # Promotion, and members of which only some are numbers, take PyTorch's loop.
    for others in ([t.double() for t in one], many[:1] + one[1:]):
        found = torch._foreach_add(on(device, many), on(device, others), alpha=2)
        assert_close(on("cpu", found), torch._foreach_add(many, others, alpha=2))
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        torch._foreach_add_(on(device, one), on(device, many))


def test_copies_convert_and_cross_devices(device, second, module):
    source = drawn([(3,)] * 40, torch.float64, 1)
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.int16, torch.bool):
        targets = [torch.zeros(3, dtype=dtype) for _ in source]
        ours = on(device, targets)
        _, count = launches(module, torch._foreach_copy_, ours, on(device, source))
        assert count == math.ceil(40 / LIST)
        torch._foreach_copy_(targets, source)
        assert_close(on("cpu", ours), targets)
    for place in ("cpu", second):
        ours = on(device, torch._foreach_mul(source, 0))
        torch._foreach_copy_(ours, on(place, source))
        assert_close(on("cpu", ours), source)


def test_bits_survive_a_copy(device):
    pattern = torch.tensor([0x7FA00001, -0x5FFFFF, -(2**31), 1], dtype=torch.int32)
    source = [pattern.view(torch.float32).to(device), pattern.view(torch.float16).to(device)]
    for each in source:
        target, clone = torch.empty_like(each), torch._foreach_clone([each])[0]
        torch._foreach_copy_([target], [each])
        for copied in (target, clone):
            assert copied.cpu().view(torch.int32).tolist() == pattern.tolist()


def test_gradients_flow_through_lists(device):
    def gradients(place):
        a, b, c = (on(place, drawn([(3,), (2, 2)], torch.float64, seed)) for seed in range(3))
        leaves = [t.requires_grad_() for t in a + b + c]
        out = torch._foreach_addcdiv(torch._foreach_mul(a, b), b, torch._foreach_exp(c), value=0.5)
        torch._foreach_mul_(out, 2.0)
        torch._foreach_add_(out, a, alpha=3)
        out = torch._foreach_lerp(out, torch._foreach_sqrt(torch._foreach_abs(b)), 0.3)
        out = torch._foreach_div(out, [2.0, 4.0])
        sum(t.square().sum() for t in out).backward()
        return [t.grad.cpu() for t in leaves]

    assert_close(gradients(device), gradients("cpu"))


def test_overwriting_what_backward_needs_is_an_error(device):
    for write in (lambda t: torch._foreach_add_([t], 1.0), lambda t: torch._foreach_zero_([t]),
                  lambda t: torch._foreach_copy_([t], [torch.zeros_like(t)])):  # fmt: skip
        leaf = torch.ones(3, device=device, requires_grad=True)
        middle = leaf * 2
        out = middle.square().sum()
        with torch.no_grad():
            write(middle)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            out.backward()


def test_inference_mode(device):
    with torch.inference_mode():
        list_ = [torch.ones(2, device=device)]
        torch._foreach_add_(list_, 1.0)
        assert torch._foreach_neg(list_)[0].tolist() == [-2, -2]
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        torch._foreach_add_(list_, 1.0)


CALLS = {
    "lengths": (torch._foreach_add, ([0, 1], [0])),
    "nothing": (torch._foreach_add, ([], 1.0)),
    "no second list": (torch._foreach_mul, ([0], [])),
    "third list": (torch._foreach_addcmul, ([0, 1], [0, 1], [0])),
    "too few numbers": (torch._foreach_mul, ([0, 1], (2.0,))),
    "numbers on a device": (torch._foreach_addcdiv, ([0], [0], [0], "element")),
    "numbers of a wrong length": (torch._foreach_addcdiv_, ([0, 1], [0, 1], [0, 1], "packed")),
    "shapes": (torch._foreach_mul, ([0], [2])),
    "difference with bool": (torch._foreach_sub, ([0], True)),
    "negative of bool": (torch._foreach_neg, ([3],)),
    "a vector for a number": (torch._foreach_mul, ([0], "vector")),
    "promotion in place": (torch._foreach_div_, ([4], 2)),
    "negative power of an integer": (torch._foreach_pow, ([4], -1)),
}


@pytest.mark.parametrize("what", CALLS)
def test_errors_are_those_of_the_cpu(device, what):
    operator, template = CALLS[what]
    tensors = [torch.ones(2), torch.ones(3), torch.ones(5), torch.ones(2).bool(), torch.arange(2)]

    def message(place):
        numbers = {"vector": torch.ones(2, device=place), "packed": torch.ones(3),
                   "element": torch.ones(1, device=device)}  # fmt: skip

        def given(argument):
            if isinstance(argument, str):
                return numbers[argument]
            return (
                [tensors[k].to(place) for k in argument] if isinstance(argument, list) else argument
            )

        with pytest.raises(RuntimeError) as error:
            operator(*map(given, template))
        return str(error.value).split("\n")[0]

    assert message(device) == message("cpu")


def test_lists_on_two_devices(device, second):
    with torch.device("cpu"):
        ours, theirs = torch.ones(3, device=device), torch.full((3,), 2.0, device=second)
    assert [t.tolist() for t in torch._foreach_mul([theirs] * 2, 2.0)] == [[4, 4, 4]] * 2
    found = torch._foreach_add([ours, theirs], [ours, theirs])
    assert [t.tolist() for t in found] == [[2, 2, 2], [4, 4, 4]]
    assert [t.device for t in found] == [ours.device, theirs.device]
    if second != "cpu":
        with pytest.raises(RuntimeError, match="to be on the same device"):
            torch._foreach_add([ours], [theirs])


@pytest.mark.parametrize(("options", "operators"), [({}, 8), ({"capturable": True}, 17)], ids=str)
def test_an_adam_step_is_a_few_launches_a_group(device, module, native, options, operators):
    parameters = [torch.ones(3, 2, device=device, requires_grad=True) for _ in range(100)]
    optimizer = torch.optim.Adam(parameters, 0.1, foreach=True, **options)
    for parameter in parameters:
        parameter.grad = torch.full_like(parameter, 0.5)
    optimizer.step()
    _, count = launches(module, optimizer.step)
    assert count <= operators * math.ceil(100 / LIST)
    assert_close(parameters[99].detach().cpu(), torch.full((3, 2), 0.8), rtol=1e-5, atol=1e-5)
