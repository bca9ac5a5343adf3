#!/usr/bin/env python3
"""Holds hone's byte pairs against Hugging Face's tokenizers on a large mixed corpus: the same ids for every tokenizer that can be read, and a tokenizer
that hone made is read there and gives the same ids (needs tokenizers). With --fixtures it writes tests/fixtures/bpe instead.

usage: check-tokenizers.py HONE [MEGABYTES [SEED]]
       check-tokenizers.py --fixtures [DIR]
"""
import json
import pathlib
import random
import subprocess
import sys
import sysconfig
import tempfile
import time

import numpy
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+")


def split(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


CUTS = {
    "gpt2": pre_tokenizers.ByteLevel(add_prefix_space=False),
    "prefix": pre_tokenizers.ByteLevel(add_prefix_space=True),
    "llama3": split(LLAMA3),
    "qwen2": split(QWEN2),
    "cl100k": split(CL100K),
    "digits": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]),
}


MARK = "\u2581"
REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": MARK}
PREPEND = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": MARK}, REPLACE]}
WORDS = MARK + "+[^" + MARK + "\\n]*|[^" + MARK + "\\n]+|\\n"


def metaspace(scheme):
    return {"type": "Metaspace", "replacement": MARK, "prepend_scheme": scheme, "split": False}


# Of SentencePiece's kind: normalizer, pre-tokenizer, is "\n" a character of the vocabulary, do merges stay within words
SPACED = {
    "llama2": (PREPEND, None, False, True),
    "mistral": (None, metaspace("first"), False, True),
    "always": (None, metaspace("always"), True, True),
    "never": ({"type": "Sequence", "normalizers": [REPLACE]}, None, False, True),
    "across": (REPLACE, None, False, False),
}


def odd_text(n, rng):
    """Characters of all kinds, and what regular expressions stumble over."""
    bits = ["'s", "'S", "'RE", "'ll", "'\u017f", "'", " '", "''", "don't", "DON'T", "1", "12", "1234567", "\u0661\u0662\u0663\u0664", "\u2167", "\u00bd", " ", "  ", "   ",
            "\t", "\n", "\r\n", "\n\n", " \n", "\n ", "\u00a0", "\u3000", "\u2028", "\x85", "\x1c", "\x00", "a", "B", "word", "\u00fcber", "\u4f60\u597d", "\u0939\u093f\u0928\u094d\u0926\u0940",
            "\u202e", "\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "e\u0301", "<|endoftext|>", "<|endof", "<|", "<|pad|>", "!", "?!", "...", " .", "_", "__init__", "=>", "\ufeff", "\ufffd"]
    out = []
    for _ in range(n):
        k = rng.random()
        if k < 0.8:
            out.append(rng.choice(bits))
        elif k < 0.9:
            out.append(chr(rng.randrange(0x20, 0x3000)))
        else:
            c = rng.randrange(0x110000)
            out.append(chr(c) if not 0xD800 <= c < 0xE000 else "x")
    return "".join(out)


def all_characters():
    """Each inside of a word and beside others, in texts of 4096; private ones and empty planes are sampled."""
    points = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000 and (c < 0x32400 or c % 61 == 0)]
    return ["".join(f"a{chr(c)}b {chr(c)}{chr(c)}1 " for c in points[i : i + 4096]) for i in range(0, len(points), 4096)]


def corpus(megabytes, seed):
    """Texts: programs, prose and pages of what Python has installed, with odd text between them, and all characters."""
    rng, texts, size = random.Random(seed), all_characters(), 0
    files = sorted(p for where in ("stdlib", "purelib") for p in pathlib.Path(sysconfig.get_paths()[where]).rglob("*") if p.suffix in
                   (".py", ".txt", ".md", ".rst", ".json", ".html", ".h", ".csv", ".pyi"))
    rng.shuffle(files)
    for path in files:
        try:
            text = path.read_text("utf-8")
        except (UnicodeDecodeError, OSError):
            continue
        texts.append(text[:200000] + odd_text(200, rng))
        size += len(texts[-1])
        if size > megabytes * 1000000:
            break
    return texts


def train(cut, texts, vocab, ignore_merges=False):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer = CUTS[cut]
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=vocab, special_tokens=["<|endoftext|>"], show_progress=False,
                                                              initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.add_special_tokens([AddedToken("<|pad|>", special=True), AddedToken("<|endof", special=True)])
    return tokenizer


def overlapping(tokenizer):
    """Added tokens that share characters: all that are not normalized are found before the first that is, wherever they begin and however long."""
    raw, normalized = ["init_", "123", "o", "?", ".."], ["__in", "_", "1234567", "456", "word", "don'", "n't", "?!", "..."]
    tokenizer.add_tokens([AddedToken(t, normalized=True) for t in normalized] + [AddedToken(t, normalized=False) for t in raw])
    return tokenizer


def train_spaced(kind, texts, vocab):
    """As Llama 2 and Mistral have it: characters are merged, and those without a token are the tokens of their bytes."""
    normalizer, pre_tokenizer, lines, within = SPACED[kind]
    by_bytes = [f"<0x{i:02X}>" for i in range(256)]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Replace(" ", MARK)
    cuts = [pre_tokenizers.Split(Regex(WORDS), "isolated")] if within else [pre_tokenizers.Split(Regex(".{1,40}"), "isolated")]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(([] if lines else [pre_tokenizers.Split("\n", "removed")]) + cuts)
    texts = [t.replace("\0", "") for t in texts]               # a vocabulary with it is refused: no key of JSON holds it here
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=vocab, special_tokens=["<unk>", "<s>", "</s>"] + by_bytes, show_progress=False,
                                                              limit_alphabet=150))
    document = json.loads(tokenizer.to_str())
    document |= {"normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "added_tokens": [t for t in document["added_tokens"] if t["content"] not in by_bytes],
                 "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": MARK}, "content": " "}, {"type": "ByteFallback"},
                                                              {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}}
    return Tokenizer.from_str(json.dumps(document))


def spaced_text(n, rng):
    """Spaces, their marks, specials, and what has no token."""
    bits = [" ", "  ", "    ", MARK, MARK * 2, "\t", "\n", "\n\n", " \n", "\n ", "<s>", "</s>", "</s>\n", "<unk>", "<0x0A>", "<0x", "word", "Word", " the", "of the", "\u4f60", "\U0001f600",
            "\u00fc", "\x00", "\x7f", "1234", "don't", ".", ","]
    return "".join(rng.choice(bits) for _ in range(n))


def shards_of(folder):
    ids = []
    for path in sorted(folder.glob("*.bin")):
        wide = numpy.fromfile(path, numpy.int32, 3)[0] == 20240801
        ids.append(numpy.fromfile(path, numpy.uint32 if wide else numpy.uint16, offset=1024).astype(numpy.int64))
    return numpy.concatenate(ids)


def run(*words):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr}")
    return done.stdout


def compare(name, hone, tokenizer, path, texts, folder):
    start = time.monotonic()
    want = numpy.concatenate([numpy.array(e.ids, numpy.int64) for e in tokenizer.encode_batch_fast(texts, add_special_tokens=False)])
    theirs = time.monotonic() - start
    said = json.loads(run(hone, "tokenize", folder / "corpus", "--tokenizer", path, "--out", folder / f"shards-{name}", "--shard", 3000001, "--json"))
    got = shards_of(folder / f"shards-{name}")
    same = len(want) == len(got) and (want == got).all()
    if not same:
        n = min(len(want), len(got))
        at = int((want[:n] != got[:n]).argmax())
        sys.exit(f"{name}: {len(want)} tokens there and {len(got)} here; first other one is token {at}, near "
                 f"{tokenizer.decode(want[max(0, at - 8):at + 8].tolist())!r}: {want[at - 3:at + 5]} and {got[at - 3:at + 5]}")
    print(f"{name}: {len(want)} tokens of {said['bytes'] / 1e6:.1f} MB are the same; {said['seconds']:.2f} s here, {theirs:.2f} s there")


def check(hone, megabytes, seed):
    texts = corpus(megabytes, seed)
    few = texts[:: max(1, len(texts) // 100)]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "corpus").mkdir()
        for i, text in enumerate(texts):
            (folder / f"corpus/{i:06d}.txt").write_bytes(text.encode())
        for cut in CUTS:
            tokenizer = train(cut, few, 20000, ignore_merges=cut == "llama3")
            path = folder / f"{cut}.json"
            tokenizer.save(str(path))
            compare(cut, hone, tokenizer, path, texts, folder)
        for cut in ("gpt2", "prefix"):
            tokenizer = overlapping(train(cut, few, 20000))
            path = folder / f"overlap-{cut}.json"
            tokenizer.save(str(path))
            compare(f"overlap-{cut}", hone, tokenizer, path, texts, folder)
        rng = random.Random(seed)
        for i in range(0, len(texts), 9):
            texts[i] += spaced_text(300, rng)
            (folder / f"corpus/{i:06d}.txt").write_bytes(texts[i].encode())
        for kind in SPACED:
            tokenizer = train_spaced(kind, few, 8000)
            path = folder / f"{kind}.json"
            tokenizer.save(str(path))
            compare(kind, hone, tokenizer, path, texts, folder)
        wide = train("gpt2", texts, 70000)                      # ids of four bytes
        wide.save(str(folder / "wide.json"))
        compare("wide", hone, wide, folder / "wide.json", texts, folder)
        pair = folder / "pair"                                  # as GPT-2 was published
        pair.mkdir()
        train("gpt2", few, 12000).model.save(str(pair))
        again = Tokenizer(models.BPE.from_file(str(pair / "vocab.json"), str(pair / "merges.txt")))
        again.pre_tokenizer = CUTS["gpt2"]
        again.decoder = decoders.ByteLevel()
        again.add_special_tokens(["<|endoftext|>"])
        compare("vocab.json and merges.txt", hone, again, pair, texts, folder)
        for cut in ("gpt2", "llama3"):
            own = folder / f"own-{cut}.json"
            said = json.loads(run(hone, "tokenizer", "train", folder / "corpus", "--vocab", 16384, "--cut", cut, "--out", own, "--json"))
            print(f"hone tokenizer train, {cut}: {said['seconds']:.2f} s")
            compare(f"own-{cut}", hone, Tokenizer.from_file(str(own)), own, texts, folder)


def write_fixtures(folder):
    rng = random.Random(5)
    folder.mkdir(parents=True, exist_ok=True)
    here = pathlib.Path(__file__).read_text()
    text = here[:2500] + odd_text(900, rng)
    (folder / "text.txt").write_bytes(text.encode())
    for name, cut in {"gpt2": "gpt2", "llama3": "llama3", "digits": "digits", "prefix": "prefix", "overlap": "prefix"}.items():
        tokenizer = train(cut, [here * 3 + text], 420, ignore_merges=cut == "llama3")
        tokenizer = overlapping(tokenizer) if name == "overlap" else tokenizer
        document = json.loads(tokenizer.to_str())
        if name == "gpt2":                                      # both forms of merges
            document["model"]["merges"] = [" ".join(m) for m in document["model"]["merges"]]
        (folder / f"{name}.json").write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")))
        (folder / f"{name}.ids").write_text(" ".join(map(str, tokenizer.encode(text, add_special_tokens=False).ids)) + "\n")
    text = here[:2500] + spaced_text(900, rng) + odd_text(300, rng)
    (folder / "spaced.txt").write_bytes(text.encode())
    for kind in SPACED:
        tokenizer = train_spaced(kind, [here * 3 + text], 700)
        (folder / f"{kind}.json").write_text(tokenizer.to_str())
        (folder / f"{kind}.ids").write_text(" ".join(map(str, tokenizer.encode(text, add_special_tokens=False).ids)) + "\n")


def main():
    if sys.argv[1:2] == ["--fixtures"]:
        default = pathlib.Path(__file__).resolve().parent.parent / "tests/fixtures/bpe"
        return write_fixtures(pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else default)
    check(pathlib.Path(sys.argv[1]).resolve(), float(sys.argv[2]) if len(sys.argv) > 2 else 20, int(sys.argv[3]) if len(sys.argv) > 3 else 1)


if __name__ == "__main__":
    main()
