"""peft: LoRA trains the attention of a Llama for two steps and is merged."""

import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM


def use(device):
    config = LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
    )  # fmt: skip
    lora = LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    model = get_peft_model(LlamaForCausalLM(config), lora).to(device)
    words = torch.randint(64, (2, 10)).to(device)
    steps = torch.optim.SGD([one for one in model.parameters() if one.requires_grad], 0.1)
    losses = []
    for _ in range(2):
        loss = model(input_ids=words, labels=words).loss
        steps.zero_grad()
        loss.backward()
        steps.step()
        losses.append(loss)
    return {"losses": losses, "merged": model.merge_and_unload()(words).logits}
