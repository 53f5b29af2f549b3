"""Scripts of transformers' users on the device: the Trainer, pipelines, device_map."""

import pytest

import joined_batch
from joined_batch import close
from sandbox import NAME

pytestmark = pytest.mark.one_mode


@pytest.mark.parametrize("way", [[], ["fsdp"]], ids=["ddp", "fsdp2"])
def test_two_ranks_of_the_trainer_have_the_gradients_of_one_process_on_the_joined_batch(way):
    first, second = joined_batch.run_ranks("trainer_ranks.py", 2, "4", *way)
    gradients, parameters = joined_batch.reference()
    for rank, found in enumerate((first, second)):
        assert (found["device"], found["ranks"]) == (f"{NAME}:{rank}", 2)
        assert found["fallbacks"] == []
        assert (found["held"] < 0.6 * len(parameters)) is bool(way)
        close(found["gradients"], gradients)
        close(found["parameters"], parameters)
    assert first["gradients"] == second["gradients"]


@pytest.mark.parametrize("mixed", ["bf16", "fp16"])
def test_the_trainer_in_mixed_precision(mixed):
    """Started by the launcher, on one rank."""
    [found] = joined_batch.run_ranks("trainer_ranks.py", 1, "8", mixed)
    gradients, _ = joined_batch.reference()
    assert found["mixed"] == mixed
    assert found["device"].startswith(NAME)
    close(found["gradients"], gradients, 0.05)


PIPELINES = """
import tempfile, warnings
import torch_graft.integrations.transformers
from torch_graft import integrations
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast, TrainingArguments, pipeline

folder = tempfile.mkdtemp()
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(59))]
with open(folder + "/vocab.txt", "w") as file:
    file.write("\\n".join(words))
config = BertConfig(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
torch.manual_seed(0)
model = BertForSequenceClassification(config).eval()
model.save_pretrained(folder)
tokenizer = BertTokenizerFast(folder + "/vocab.txt")

def ask(**given):
    made = pipeline("text-classification", model=model, tokenizer=tokenizer, **given)
    return str(made.device), made("w1 w2 w30")[0]["score"]

wanted = ask(device="cpu")
for given, place in (({}, D + ":0"), ({"device": 0}, D + ":0"), ({"device": 1}, D + ":1"),
                     ({"device": D + ":1"}, D + ":1"), ({"device": torch.device(D)}, D)):
    where, score = ask(**given)
    assert where == place and abs(score - wanted[1]) < 1e-5, (given, where, score, wanted)
for way in ("auto", "balanced", "sequential", D, {"": 1}, 1):
    loaded = BertForSequenceClassification.from_pretrained(folder, device_map=way)
    assert loaded.device == torch.device(D, 1 if way in (1, {"": 1}) else 0), (way, loaded.device)
    answer = pipeline("text-classification", model=loaded.eval(), tokenizer=tokenizer)("w1 w2 w30")[0]
    assert abs(answer["score"] - wanted[1]) < 1e-5
assert TrainingArguments(output_dir=folder, bf16=True).device.type == D
on_cpu = TrainingArguments(output_dir=folder, use_cpu=True)
assert on_cpu.device.type == on_cpu.distributed_state.device.type == "cpu"
integrations.disable("transformers")
assert "ACCELERATE_TORCH_DEVICE" not in os.environ
assert ask()[0] == "cpu" and integrations.enabled() == ["accelerate"]
integrations.enable("transformers")
assert ask()[0] == D + ":0"
"""


def test_pipelines_and_device_maps(python):
    python(PIPELINES, TRANSFORMERS_VERBOSITY="error").good()
