#!/usr/bin/env python3
"""Makes tests/fixtures/hf: small random models as Hugging Face's transformers, nanoGPT and Meta write them, and the logits that
transformers computes for them in double precision (needs torch, safetensors and transformers).

usage: make-hf-fixtures.py [DIR]
       make-hf-fixtures.py --check HONE      makes larger models, imports and exports each with HONE, and compares with transformers
"""
import copy
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM


def gpt2(**sizes):
    sizes = {"vocab_size": 40, "n_positions": 12, "n_embd": 16, "n_layer": 2, "n_head": 2, "bos_token_id": 0, "eos_token_id": 0} | sizes
    return GPT2LMHeadModel(GPT2Config(**sizes))


def llama(**sizes):
    sizes = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
             "intermediate_size": 24, "max_position_embeddings": 12, "rms_norm_eps": 1e-5, "bos_token_id": 0, "eos_token_id": 0} | sizes
    return LlamaForCausalLM(LlamaConfig(**sizes))


def scaled(factor, context, low, high, base=500.0):
    """Angles of Llama 3: all, some and nothing of a pair's speed is kept."""
    return {"rope_type": "llama3", "rope_theta": base, "factor": factor, "low_freq_factor": low, "high_freq_factor": high,
            "original_max_position_embeddings": context}


def randomize(model, seed, dtype=torch.float32):
    """Large enough that every part matters, and numbers of `dtype`."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.normal_(0, 0.25 if p.dim() > 1 else 0.2)
            if p.dim() == 1 and name.endswith("weight"):
                p.add_(1)
            p.copy_(p.to(dtype))
    return model.eval()


def tokens_for(model, rows=2):
    torch.manual_seed(1)
    c = model.config
    return torch.randint(0, c.vocab_size, (rows, min(c.max_position_embeddings, 64)))


def logits_of(model, tokens):
    with torch.no_grad():
        return copy.deepcopy(model).double()(tokens).logits.float()


def write_answer(model, path):
    tokens = tokens_for(model)
    save_file({"tokens": tokens.int(), "logits": logits_of(model, tokens)}, path)


def plain(model):
    return {k: v.detach().float().clone().contiguous() for k, v in model.state_dict().items()}


def nano_names(model, prefix="_orig_mod."):
    """GPT-2 in the names of nanoGPT: matrices as Linear has them, and the head beside the embeddings it is tied to."""
    turned = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")
    return {prefix + k: (v.T if k.endswith(turned) else v).contiguous() for k, v in plain(model).items()}


def meta_names(model):
    """LLaMA in the names of Meta: neighbours are rotated together."""
    c = model.config
    renamed = {"self_attn.q_proj": "attention.wq", "self_attn.k_proj": "attention.wk", "self_attn.v_proj": "attention.wv",
               "self_attn.o_proj": "attention.wo", "mlp.gate_proj": "feed_forward.w1", "mlp.up_proj": "feed_forward.w3",
               "mlp.down_proj": "feed_forward.w2", "input_layernorm": "attention_norm", "post_attention_layernorm": "ffn_norm",
               "embed_tokens": "tok_embeddings", "lm_head": "output"}
    out = {}
    for k, v in plain(model).items():
        if k.endswith(("q_proj.weight", "k_proj.weight")):
            width = c.hidden_size // c.num_attention_heads
            v = v.view(-1, 2, width // 2, v.shape[1]).transpose(1, 2).reshape(v.shape)
        k = k.removeprefix("model.")
        for a, b in renamed.items():
            k = k.replace(a, b)
        out[k] = v.contiguous()
    params = {"dim": c.hidden_size, "n_layers": c.num_hidden_layers, "n_heads": c.num_attention_heads, "n_kv_heads": c.num_key_value_heads,
              "norm_eps": c.rms_norm_eps, "vocab_size": -1, "max_seq_len": c.max_position_embeddings}
    return out, params


def write_fixtures(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    model = randomize(gpt2(), 2)
    model.save_pretrained(folder / "gpt2")
    write_answer(model, folder / "gpt2.answer")
    model = randomize(llama(rope_theta=500.0), 3)
    model.save_pretrained(folder / "llama")
    write_answer(model, folder / "llama.answer")
    model = randomize(llama(tie_word_embeddings=True), 4, torch.bfloat16)
    write_answer(model, folder / "shards.answer")          # before the angles are rounded, too
    model.to(torch.bfloat16).save_pretrained(folder / "shards", max_shard_size="6KB")
    model = randomize(llama(num_hidden_layers=1, hidden_size=32, max_position_embeddings=24, rope_parameters=scaled(4.0, 6, 0.25, 2.0)), 13)
    model.save_pretrained(folder / "llama3")
    write_answer(model, folder / "llama3.answer")
    model = randomize(gpt2(n_layer=1), 5, torch.float16)
    save_file({k: v.half() for k, v in nano_names(model).items()}, folder / "nano.safetensors")
    write_answer(model, folder / "nano.answer")
    model = randomize(llama(num_hidden_layers=1), 6)
    tensors, params = meta_names(model)
    (folder / "meta").mkdir()
    save_file(tensors, folder / "meta/consolidated.safetensors")
    (folder / "meta/params.json").write_text(json.dumps(params, indent=1) + "\n")
    write_answer(model, folder / "meta.answer")
    for junk in folder.glob("*/generation_config.json"):
        junk.unlink()


def run(*words):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr}")
    return done.stdout


def check(hone, name, model, folder, dtype=torch.float32, **saving):
    """Import, export, and the same model again in transformers: equal numbers, and so equal logits. hone's own loss agrees with it."""
    given, run_folder, back = folder / name, folder / f"{name}-run", folder / f"{name}-back"
    tokens = tokens_for(model, 8)
    want = logits_of(model, tokens)
    model.to(dtype).save_pretrained(given, **saving)
    run(hone, "import", given, "--out", run_folder, "--set", f"model.seq={tokens.shape[1] - 1}")
    run(hone, "export", run_folder, "--to", "hf", "--out", back)
    again = AutoModelForCausalLM.from_pretrained(back, dtype=torch.float32)
    for k, v in plain(again).items():
        assert torch.equal(v, plain(model)[k]), f"{name}: {k} changed on the way"
    got = logits_of(again.eval(), tokens)
    apart = (got - want).abs().max().item()
    assert apart < 1e-4, f"{name}: logits are {apart} apart"
    shard = folder / f"{name}.bin"
    shard.write_bytes(b"".join(int(t).to_bytes(2, "little") for t in tokens[:1].flatten()))
    said = json.loads(run(hone, "eval", run_folder, "--json", "--split", "train", "--set", "data.source=bin", "--set", f"data.path={shard}",
                          "--set", "data.val_fraction=0"))
    loss = torch.nn.functional.cross_entropy(want[0, :-1].double(), tokens[0, 1:]).item()
    assert abs(said["loss"] - loss) < 1e-4, f"{name}: hone's loss is {said['loss']}, that of transformers {loss}"
    print(f"{name}: logits {apart:.1e} apart after a round trip, loss {said['loss']:.7f} in hone and {loss:.7f} in transformers")


def check_all(hone):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        wide = {"vocab_size": 5000, "n_positions": 64, "n_embd": 96, "n_layer": 5, "n_head": 6}
        check(hone, "gpt2", randomize(gpt2(**wide), 7), folder)
        check(hone, "gpt2-shards", randomize(gpt2(**wide), 8, torch.float16), folder, torch.float16, max_shard_size="1MB")
        check(hone, "gpt2-own-head", randomize(gpt2(tie_word_embeddings=False, n_inner=100, **wide), 9), folder)
        wide = {"vocab_size": 5000, "max_position_embeddings": 64, "hidden_size": 96, "num_hidden_layers": 5, "num_attention_heads": 6,
                "intermediate_size": 200}
        check(hone, "llama", randomize(llama(num_key_value_heads=6, **wide), 10), folder)
        check(hone, "llama-groups", randomize(llama(num_key_value_heads=2, rope_theta=5e5, **wide), 11, torch.bfloat16), folder, torch.bfloat16)
        check(hone, "llama-3", randomize(llama(num_key_value_heads=2, rope_parameters=scaled(8.0, 64, 1.0, 4.0, 1e4), **wide), 13), folder)
        check(hone, "llama-linear", randomize(llama(rope_parameters={"rope_type": "linear", "factor": 2.5, "rope_theta": 1e4}, **wide), 14), folder)
        check(hone, "llama-tied", randomize(llama(num_key_value_heads=1, tie_word_embeddings=True, **wide), 12), folder, max_shard_size="2MB")


def main():
    if sys.argv[1:2] == ["--check"]:
        return check_all(pathlib.Path(sys.argv[2]).resolve())
    default = pathlib.Path(__file__).resolve().parent.parent / "tests/fixtures/hf"
    write_fixtures(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default)


if __name__ == "__main__":
    main()
