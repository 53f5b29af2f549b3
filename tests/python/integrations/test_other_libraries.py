"""sentence-transformers, fastai and ultralytics take the device where they took the CPU or refused."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from sandbox import program

pytestmark = pytest.mark.one_mode

# Beside the default torch torchvision lies apart, because its C++ operators do not load (tools/setup); where it is
# installed they do (tools/test_versions.py).
LOADS = find_spec("torchvision") is not None
VISION = [] if LOADS else [str(Path(sys.prefix) / "vision")]
SCHEMAS = (
    ""
    if LOADS
    else """
library = torch.library.Library("torchvision", "DEF")
library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
"""
)

SENTENCES = """
import tempfile
import torch_graft.integrations.sentence_transformers
from torch_graft import integrations
from sentence_transformers import SentenceTransformer, models
from transformers import BertConfig, BertModel, BertTokenizerFast

folder = tempfile.mkdtemp()
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(59))]
with open(folder + "/vocab.txt", "w") as file:
    file.write("\\n".join(words))
torch.manual_seed(0)
sizes = dict(vocab_size=64, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=64)
BertModel(BertConfig(**sizes)).save_pretrained(folder)
BertTokenizerFast(folder + "/vocab.txt").save_pretrained(folder)

def embed(**given):
    words = models.Transformer(folder)
    model = SentenceTransformer(modules=[words, models.Pooling(words.get_word_embedding_dimension())], **given)
    return model.device, torch.tensor(model.encode(["w1 w2", "w30"]))

where, found = embed()
assert where == torch.device(D, 0), where
torch.testing.assert_close(found, embed(device="cpu")[1], rtol=1e-4, atol=1e-5)
os.environ["LOCAL_RANK"] = "1"
assert embed()[0] == torch.device(D, 1)
integrations.disable("sentence_transformers")
assert embed()[0].type == "cpu"
"""

FASTAI = """
import warnings
warnings.simplefilter("error", UserWarning)
import torch_graft.integrations.fastai
from torch_graft import integrations
from fastai.basics import Callback, CrossEntropyLossFlat, DataLoader, DataLoaders, Learner, default_device, defaults
import fastai.callback.fp16
import joined_batch

class Look(Callback):
    order = 20  # after the scaler and the autocast are made

    def before_fit(self):
        self.found = set()
        self.model[0].register_forward_hook(lambda _, given, made: self.found.add((made.device, made.dtype)))

    def after_backward(self):
        scaler = getattr(self.learn, "scaler", None)
        self.found.add((scaler._device, scaler.is_enabled()) if scaler else None)

def learn(way=None):
    rows = joined_batch.Rows()
    loaders = DataLoaders(DataLoader(rows, bs=8), DataLoader(rows, bs=8), device=default_device())
    look = Look()
    learner = Learner(loaders, joined_batch.network(), loss_func=CrossEntropyLossFlat(), lr=0.1, cbs=look)
    learner = getattr(learner, way)() if way else learner
    with learner.no_bar(), learner.no_logging():
        learner.fit(1)
    return look.found, learner.validate()[0]

place = torch.device(D, 0)
found, loss = learn()
assert found == {None, (place, torch.float32)}, found
for way, dtype in (("to_fp16", torch.float16), ("to_bf16", torch.bfloat16)):
    found, half = learn(way)
    assert found == {(D, way == "to_fp16"), (place, dtype)}, found
    assert abs(half - loss) < 0.05, (half, loss)
default_device(False)
found, wanted = learn()
assert found == {None, (torch.device("cpu"), torch.float32)}, found
assert abs(loss - wanted) < 1e-4, (loss, wanted)
defaults.use_cuda = None
assert default_device() == place
integrations.disable("fastai")
assert default_device().type == "cpu"
"""


def test_sentence_transformers(python):
    python(SENTENCES, TRANSFORMERS_VERBOSITY="error").good()


def test_fastai(python):
    python(SCHEMAS + FASTAI, PYTHONPATH=":".join([str(Path(__file__).parent), *VISION])).good()


def test_ultralytics(python, tmp_path, monkeypatch):
    """Where torchvision loads, with boxes that its operator suppresses, and with the validation."""
    monkeypatch.chdir(tmp_path)
    code = SCHEMAS + program("tests/python/integrations/yolo_device.py")
    settings = {"YOLO_CONFIG_DIR": str(tmp_path), "YOLO_OFFLINE": "true"}
    python(code, timeout=250, PYTHONPATH=":".join(VISION), WHOLE="1" * LOADS, **settings).good()
