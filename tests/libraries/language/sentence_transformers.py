"""sentence-transformers: a BERT with mean pooling embeds sentences and compares them."""

import tempfile

from sentence_transformers import SentenceTransformer, models, util
from transformers import BertConfig, BertModel, BertTokenizerFast


def use(device):
    folder = tempfile.mkdtemp()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(59))]
    with open(f"{folder}/vocab.txt", "w") as file:
        file.write("\n".join(words))
    sizes = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
    }
    BertModel(BertConfig(vocab_size=64, **sizes)).save_pretrained(folder)
    BertTokenizerFast(f"{folder}/vocab.txt").save_pretrained(folder)
    reader = models.Transformer(folder)
    model = SentenceTransformer(modules=[reader, models.Pooling(32)], device=device)
    found = model.encode(["w1 w2 w9", "w30", "w5 w1"], convert_to_tensor=True)
    return {"vectors": found, "likeness": util.cos_sim(found, found)}
