"""trl: the SFTTrainer trains a Llama for two steps."""

import tempfile

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

from torch_graft import integrations

integrations.enable("transformers")


def use(device):
    words = {
        word: number
        for number, word in enumerate(["<pad>", "<eos>", *(f"w{i}" for i in range(62))])
    }
    plain = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="<pad>", eos_token="<eos>"
    )
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4,
        pad_token_id=0, eos_token_id=1, bos_token_id=1,
    ))  # fmt: skip
    texts = [" ".join(f"w{(7 * i + j) % 62}" for j in range(9)) for i in range(8)]
    given = SFTConfig(
        tempfile.mkdtemp(), max_steps=2, per_device_train_batch_size=4, optim="sgd", learning_rate=0.1, report_to="none",
        use_cpu=device == "cpu", save_strategy="no", disable_tqdm=True, max_length=16, bf16=False, gradient_checkpointing=False,
    )  # fmt: skip
    trainer = SFTTrainer(
        model, given, train_dataset=Dataset.from_dict({"text": texts}), processing_class=tokenizer
    )
    return {"loss": trainer.train().training_loss, "weights": dict(model.state_dict())}
