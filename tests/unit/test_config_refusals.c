/* Every kind of configuration that is refused, with the exact message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/config_int.h"

#define GPT "model: {arch: gpt}\n"
#define PASSES                                                                                                         \
    "flash-attention, fuse-qkv, fuse-gate-up, fuse-residual-norm, fuse-bias-gelu, fuse-loss, hoist-constants, "        \
    "capture, fused-optimizer, async-metrics, no-zero-fill, recompute, autotune, fewer-meetings and group-levels"

/* A text with an optional override, and the error that it must give. */
struct refusal {
    const char *text, *set, *error;
};

static void expect_refusal(const struct refusal *t)
{
    struct config c, before;
    struct error err = {0};
    memset(&c, 0x5A, sizeof c);
    before = c;
    const enum status st = config_parse(&c, "t.yaml", t->text, strlen(t->text), &t->set, t->set ? 1 : 0, &err);
    if (st != BAD_INPUT || err.status != BAD_INPUT || strcmp(err.text, t->error))
        fail_msg("%s\n  wanted: %s\n  got:    %s", t->text, t->error, st == OK ? "no error" : err.text);
    assert_memory_equal(&c, &before, sizeof c);
}

static void expect_refusals(const struct refusal *table, size_t n)
{
    for (size_t i = 0; i < n; i++)
        expect_refusal(&table[i]);
}

#define EXPECT_REFUSALS(table) expect_refusals(table, sizeof table / sizeof table[0])

static void test_refuses_types(void **state)
{
    (void)state;
    static const struct refusal table[] = {
        {"model: {arch: gpt, heads: [8]}", NULL, "'t.yaml' line 1: model.heads is a list; a whole number is wanted"},
        {GPT "train:\n  lr: {a: 1}", NULL, "'t.yaml' line 3: train.lr is a section; a number is wanted"},
        {"model:\n  arch: [gpt]", NULL, "'t.yaml' line 2: model.arch is a list; gpt, llama, postln, k1 or regions is wanted"},
        {GPT "data: {path: [a]}", NULL, "'t.yaml' line 2: data.path is a list; a file name is wanted"},
        {GPT "eval: {every: [a]}", NULL,
         "'t.yaml' line 2: eval.every is a list; a number of steps, or of epochs as in '2 epochs', is wanted"},
        {"model: {arch: gpt, heads: eight}", NULL, "'t.yaml' line 1: model.heads is 'eight'; a whole number is wanted"},
        {"model: {arch: gpt, heads: 8x}", NULL, "'t.yaml' line 1: model.heads is '8x'; a whole number is wanted"},
        {"model: {arch: gpt, heads: 8.0}", NULL, "'t.yaml' line 1: model.heads is '8.0'; a whole number is wanted"},
        {"model: {arch: gpt, heads: 0x8}", NULL, "'t.yaml' line 1: model.heads is '0x8'; a whole number is wanted"},
        {"model: {arch: gpt, heads: 010}", NULL, "'t.yaml' line 1: model.heads is '010'; a whole number is wanted"},
        {"model: {arch: gpt, heads: true}", NULL, "'t.yaml' line 1: model.heads is 'true'; a whole number is wanted"},
        {"model: {arch: gpt, heads: '8'}", NULL,
         "'t.yaml' line 1: model.heads is the text \"8\"; write a number, without quotes"},
        {"model: {arch: gpt, heads: }", NULL, "'t.yaml' line 1: model.heads has no value; a whole number is wanted"},
        {"model: {arch: ~}", NULL, "'t.yaml' line 1: model.arch has no value; gpt, llama, postln, k1 or regions is wanted"},
        {GPT "train: {lr: .nan}", NULL, "'t.yaml' line 2: train.lr is '.nan'; a number is wanted"},
        {GPT "train: {lr: nan}", NULL, "'t.yaml' line 2: train.lr is 'nan'; a number is wanted"},
        {GPT "train: {lr: -.inf}", NULL, "'t.yaml' line 2: train.lr is '-.inf'; a number is wanted"},
        {GPT "train: {lr: 1e}", NULL, "'t.yaml' line 2: train.lr is '1e'; a number is wanted"},
        {GPT "train: {lr: .}", NULL, "'t.yaml' line 2: train.lr is '.'; a number is wanted"},
        {GPT "train: {lr: 0x1p-3}", NULL, "'t.yaml' line 2: train.lr is '0x1p-3'; a number is wanted"},
        {GPT "train: {lr: 1e-3 fast}", NULL, "'t.yaml' line 2: train.lr is '1e-3 fast'; a number is wanted"},
        {GPT "eval: {every: 2 weeks}", NULL,
         "'t.yaml' line 2: eval.every is '2 weeks'; a number of steps, or of epochs as in '2 epochs', is wanted"},
        {GPT "eval: {every: often}", NULL,
         "'t.yaml' line 2: eval.every is 'often'; a number of steps, or of epochs as in '2 epochs', is wanted"},
        {GPT "data: {path: \"a\\0b\"}", NULL, "'t.yaml' line 2: data.path has a NUL character in it"},
        {GPT "data: {path: \"a\\nb\"}", NULL,
         "'t.yaml' line 2: data.path is 'a b', with a control character or a byte that is not UTF-8 at position 2"},
        {GPT "data: 3", NULL, "'t.yaml' line 2: data is text; a section is wanted, with keys below it"},
        {GPT "data: [a]", NULL, "'t.yaml' line 2: data is a list; a section is wanted, with keys below it"},
        {GPT "optimize: {passes: {a: 1}}", NULL,
         "'t.yaml' line 2: optimize.passes is a section; all, none or a list of passes is wanted"},
        {GPT "optimize: {passes: }", NULL,
         "'t.yaml' line 2: optimize.passes has no value; all, none or a list of passes is wanted"},
        {GPT "optimize:\n  passes:\n  - fuse-qkv\n  - [fuse-loss]", NULL,
         "'t.yaml' line 5: optimize.passes holds what is a list; write the names of passes"},
        {GPT "optimize: {passes: [!env x]}", NULL,
         "'t.yaml' line 2: optimize.passes has the YAML tag '!env'; write it without a tag"},
        {GPT "train: {lr: !env LR}", NULL, "'t.yaml' line 2: train.lr has the YAML tag '!env'; write it without a tag"},
        {"model: !!set {arch: gpt}", NULL,
         "'t.yaml' line 1: model has the YAML tag 'tag:yaml.org,2002:set'; write it without a tag"},
        {"!hone\nmodel: {arch: gpt}", NULL,
         "'t.yaml' line 1: the file has the YAML tag '!hone'; write it without a tag"},
    };
    EXPECT_REFUSALS(table);
}

static void test_refuses_ranges(void **state)
{
    (void)state;
    static const struct refusal table[] = {
        {"model: {arch: gpt, heads: 0}", NULL, "'t.yaml' line 1: model.heads is 0; it must be from 1 to 4096"},
        {"model:\n  arch: gpt\n\n  dim: -5\n", NULL, "'t.yaml' line 4: model.dim is -5; it must be from 1 to 65536"},
        {"model: {arch: gpt, heads: 99999999999999999999}", NULL,
         "'t.yaml' line 1: model.heads is 99999999999999999999; it must be from 1 to 4096"},
        {"model: {arch: gpt, heads: 4294967304}", NULL,
         "'t.yaml' line 1: model.heads is 4294967304; it must be from 1 to 4096"},
        {"model: {arch: gpt, dropout: 1}", NULL,
         "'t.yaml' line 1: model.dropout is 1; it must be at least 0 and below 1"},
        {"model: {arch: gpt, dropout: -0.1}", NULL,
         "'t.yaml' line 1: model.dropout is -0.1; it must be at least 0 and below 1"},
        {GPT "train: {beta2: 1.0}", NULL, "'t.yaml' line 2: train.beta2 is 1.0; it must be at least 0 and below 1"},
        {GPT "train: {beta2: 0.99999999999}", NULL, "'t.yaml' line 2: train.beta2 is 0.99999999999; it must be at least 0 and below 1"},
        {GPT "train: {lr: 1e999}", NULL, "'t.yaml' line 2: train.lr is 1e999; it must be from 0 to 10"},
        {GPT "train: {lr: -1e-3}", NULL, "'t.yaml' line 2: train.lr is -1e-3; it must be from 0 to 10"},
        {GPT "train: {eps: 0}", NULL, "'t.yaml' line 2: train.eps is 0; it must be from 1.0e-30 to 1"},
        {GPT "train: {seed: 9007199254740993}", NULL,
         "'t.yaml' line 2: train.seed is 9007199254740993; it must be from 0 to 9007199254740992"},
        {GPT "data: {val_fraction: 0.95}", NULL,
         "'t.yaml' line 2: data.val_fraction is 0.95; it must be from 0 to 0.9"},
        {GPT "eval: {every: -1}", NULL, "'t.yaml' line 2: eval.every is -1; it must be from 0 to 1000000000000"},
        {GPT "train: {steps: 2147483648}", NULL,
         "'t.yaml' line 2: train.steps is 2147483648; it must be from 1 to 2147483647"},
        {GPT "log: {every: 0}", NULL, "'t.yaml' line 2: log.every is 0; it must be from 1 to 1000000000000"},
        {GPT "threads: 5000", NULL, "'t.yaml' line 2: threads is 5000; it must be from 0 to 4096"},
        {"model: {arch: lama}", NULL,
         "'t.yaml' line 1: model.arch is 'lama'; choose gpt, llama, postln, k1 or regions; did you mean 'llama'?"},
        {"model: {arch: mamba}", NULL, "'t.yaml' line 1: model.arch is 'mamba'; choose gpt, llama, postln, k1 or regions"},
        {"model: {arch: ''}", NULL, "'t.yaml' line 1: model.arch is ''; choose gpt, llama, postln, k1 or regions"},
        {"model: {arch: GPT}", NULL, "'t.yaml' line 1: model.arch is 'GPT'; choose gpt, llama, postln, k1 or regions"},
        {GPT "optimize: {precision: fp8}", NULL, "'t.yaml' line 2: optimize.precision is 'fp8'; choose f32, tf32, bf16 or f16"},
        {GPT "optimize: {precision: f16}", NULL, "'t.yaml' line 2: optimize.precision is f16, and device is auto: no CPU multiplies these "
                                                "numbers; choose f32 or bf16, or device: cuda"},
        {GPT "device: cuda\noptimize: {precision: tf32}", "device=cpu", "--set device=cpu: optimize.precision is tf32, and device is cpu: no CPU "
                                                                      "multiplies these numbers; choose f32 or bf16, or device: cuda"},
        {GPT "dist: {transport: ib}", NULL, "'t.yaml' line 2: dist.transport is 'ib'; choose auto, none, mpi or nccl"},
        {GPT "dist: {transport: nccl}\ndevice: cpu", NULL, "'t.yaml' line 2: dist.transport is nccl, and device is cpu: NCCL sums from GPU to GPU; "
                                                           "choose mpi, or device: cuda"},
        {GPT "optimize: {passes: some}", NULL,
         "'t.yaml' line 2: optimize.passes: there is no pass 'some'; choose all, none or from " PASSES},
        {GPT "optimize:\n  passes:\n  - fuse-qkv\n  - fuse-los\n", NULL,
         "'t.yaml' line 5: optimize.passes: there is no pass 'fuse-los'; did you mean 'fuse-loss'?"},
        {GPT "optimize: {passes: [all]}", NULL,
         "'t.yaml' line 2: optimize.passes: there is no pass 'all'; choose all, none or from " PASSES},
        {GPT "optimize: {passes: ['']}", NULL,
         "'t.yaml' line 2: optimize.passes: there is no pass ''; choose all, none or from " PASSES},
        {GPT "optimize: {fuse-qkv: yes}", NULL, "'t.yaml' line 2: optimize.fuse-qkv is 'yes'; choose auto, on or off"},
        {GPT "device: gpu", NULL, "'t.yaml' line 2: device is 'gpu'; choose auto, cpu or cuda; did you mean 'cuda'?"},
    };
    EXPECT_REFUSALS(table);
}

static void test_refuses_keys(void **state)
{
    (void)state;
    static const struct refusal table[] = {
        {GPT "train: {warmpu: 3}", NULL,
         "'t.yaml' line 2: there is no key 'train.warmpu'; did you mean 'train.warmup'?"},
        {GPT "train: {batchsize: 3}", NULL,
         "'t.yaml' line 2: there is no key 'train.batchsize'; did you mean 'train.batch_size'?"},
        {GPT "lr: 1", NULL, "'t.yaml' line 2: there is no key 'lr'; did you mean 'train.lr'?"},
        {"model: {arch: gpt, lr: 1}", NULL, "'t.yaml' line 1: there is no key 'model.lr'; did you mean 'train.lr'?"},
        {"modle: {arch: gpt}", NULL, "'t.yaml' line 1: there is no key 'modle'; did you mean 'model'?"},
        {GPT "thread: 2", NULL, "'t.yaml' line 2: there is no key 'thread'; did you mean 'threads'?"},
        {GPT "eval: {foo: 3}", NULL,
         "'t.yaml' line 2: there is no key 'eval.foo'; section eval has every, batches and batch_size"},
        {GPT "foo: 3", NULL,
         "'t.yaml' line 2: there is no key 'foo'; a file has model, data, train, k1, eval, checkpoint, log, optimize, "
         "verify, backend, dist, "
         "device and threads"},
        {GPT "'': 3", NULL,
         "'t.yaml' line 2: there is no key ''; a file has model, data, train, k1, eval, checkpoint, log, optimize, "
         "verify, backend, dist, "
         "device and threads"},
        {GPT "log:\n  an-extremely-long-key-that-nobody-would-ever-think-of-writing-in-a-file: 3", NULL,
         "'t.yaml' line 3: there is no key 'log.an-extremely-long-key-that-nobody-would-ever-think-of-wr...'; section "
         "log has every"},
        {GPT "train.lr: 1", NULL, "'t.yaml' line 2: train.lr stands outside of its section; write lr below train:"},
        {GPT "train:\n  lr: 1\n  lr: 2\n", NULL, "'t.yaml' line 4: train.lr is given twice; it is already in line 3"},
        {GPT "train: {}\nlog: {}\ntrain: {}\n", NULL,
         "'t.yaml' line 4: section train is given twice; it is already in line 2"},
        {"model: {arch: gpt, ? [a] : 3}", NULL,
         "'t.yaml' line 1: the name of a key is wanted here, and this is a list"},
        {"&a {model: *a}", NULL,
         "'t.yaml' line 1: there is no key 'model.model'; section model has arch, vocab, dim, layers, heads, kv_heads, "
         "ffn, "
         "seq, segments, positions, dropout, rope_base, rope_scaling, rope_factor, rope_low, rope_high, rope_context, norm_eps, head and tree"},
        {"train: {lr: 1}", NULL, "'t.yaml': there is no section model; a config has at least 'model: {arch: gpt}'"},
        {"log: {}\nmodel:\n  dim: 64\n", NULL, "'t.yaml' line 2: model.arch is missing; choose gpt, llama, postln, k1 or regions"},
    };
    EXPECT_REFUSALS(table);
}

static void test_refuses_yaml(void **state)
{
    (void)state;
    static const struct refusal table[] = {
        {"", NULL, "'t.yaml': there is nothing in it; a config has at least 'model: {arch: gpt}'"},
        {"# only this\n", NULL, "'t.yaml': there is nothing in it; a config has at least 'model: {arch: gpt}'"},
        {"---\n...\n", NULL, "'t.yaml': there is nothing in it; a config has at least 'model: {arch: gpt}'"},
        {"\n- model\n", NULL, "'t.yaml' line 2: the file is a list; a config has at least 'model: {arch: gpt}'"},
        {"gpt", NULL, "'t.yaml' line 1: the file is text; a config has at least 'model: {arch: gpt}'"},
        {GPT "---\nmodel: {}\n", NULL, "'t.yaml' line 2: a second YAML document starts here; a config is one document"},
        {"model: {arch: gpt\n", NULL,
         "'t.yaml' line 2: not valid YAML at column 1: did not find expected ',' or '}' (while parsing a flow mapping "
         "that "
         "starts in line 1)"},
        {"model:\n\tarch: gpt\n", NULL,
         "'t.yaml' line 2: not valid YAML at column 1: found character that cannot start any token; indent with "
         "spaces, not tabs"},
        {"model: a: b", NULL,
         "'t.yaml' line 1: not valid YAML at column 9: mapping values are not allowed in this context"},
        {GPT "log: *nowhere", NULL, "'t.yaml' line 2: not valid YAML at column 6: found undefined alias"},
        {GPT "\x01", NULL,
         "'t.yaml' line 2: byte 20 is not text (control characters are not allowed); a config is a YAML file in UTF-8"},
        {"\x89PNG", NULL,
         "'t.yaml' line 1: byte 1 is not text (invalid leading UTF-8 octet); a config is a YAML file in UTF-8"},
        {"[[[[[[[[[[[[[[[[[[[[[[[[", NULL,
         "'t.yaml' line 1: lists and sections inside each other, more than 16 deep; a config has sections of keys and "
         "nothing "
         "deeper"},
    };
    EXPECT_REFUSALS(table);
}

static void test_refuses_contradictions(void **state)
{
    (void)state;
    static const struct refusal table[] = {
        {"model:\n  arch: gpt\n  dim: 256\n  heads: 6\n", NULL,
         "'t.yaml' line 4: model.heads is 6, and 6 does not divide model.dim 256; try 4 or 8"},
        {"model:\n  arch: gpt\n  dim: 250\n", NULL,
         "'t.yaml' line 3: model.heads is 8, and 8 does not divide model.dim 250; try 5 or 10"},
        {"model: {arch: gpt, dim: 4, heads: 9}", NULL,
         "'t.yaml' line 1: model.heads is 9, and 9 does not divide model.dim 4; try 4"},
        {"model: {arch: llama, dim: 24, heads: 5}", NULL,
         "'t.yaml' line 1: model.heads is 5, and 5 does not divide model.dim 24; try 4 or 6"},
        {"model: {arch: llama, dim: 24, heads: 8}", NULL,
         "'t.yaml' line 1: model.heads is 8, so a head has 3 of the 24 numbers of model.dim, and arch llama needs an "
         "even "
         "number; try 6 or 12"},
        {"model: {arch: llama, dim: 15, heads: 3}", NULL,
         "'t.yaml' line 1: model.dim is 15, and arch llama needs an even number; try 16"},
        {"model: {arch: llama, kv_heads: 3}", NULL,
         "'t.yaml' line 1: model.kv_heads is 3, and 3 does not divide model.heads 8; try 2 or 4"},
        {"model: {arch: llama, kv_heads: 16}", NULL,
         "'t.yaml' line 1: model.kv_heads is 16, and 16 does not divide model.heads 8; try 8"},
        {"model: {arch: postln, kv_heads: 4}", NULL,
         "'t.yaml' line 1: model.kv_heads is 4 and model.heads is 8, and only arch llama shares keys and values "
         "between heads; "
         "remove kv_heads or make it 8"},
        {GPT "data:\n  source: text", NULL,
         "'t.yaml' line 3: data.source is text, and data.path is empty; set data.path to the file to read"},
        {GPT "data:\n  source: bin\n  path:\n", NULL,
         "'t.yaml' line 3: data.source is bin, and data.path is empty; set data.path to the file to read"},
        {GPT "data: {path: a.txt}", NULL,
         "'t.yaml' line 2: data.path is 'a.txt', and data.source is corpus, which reads no file; set data.source to "
         "text or "
         "bin, or remove data.path"},
        {GPT "data: {val_path: a.txt}", NULL,
         "'t.yaml' line 2: data.val_path is 'a.txt', and data.source is corpus, which reads no file; set data.source "
         "to text "
         "or bin, or remove data.val_path"},
        {GPT "data: {source: bin, path: a.bin, samples: lines}", NULL,
         "'t.yaml' line 2: data.samples is lines, and data.source bin has no lines; set data.samples to windows"},
        {GPT "train: {steps: 50, warmup: 100}", NULL,
         "'t.yaml' line 2: train.warmup is 100, and training ends after train.steps 50; it must be at most that"},
        {GPT "train: {steps: 50}", "train.warmup=100",
         "--set train.warmup=100: train.warmup is 100, and training ends after train.steps 50; it must be at most that"},
        {GPT "train: {warmup: 2001}", NULL,
         "'t.yaml' line 2: train.warmup is 2001, and training ends after train.steps 2000; it must be at most that"},
        {GPT "train: {min_lr: 0.001}", NULL,
         "'t.yaml' line 2: train.min_lr is 0.001, and the schedule falls from train.lr 0.0003; it must be at most "
         "that"},
        {"model:\n  arch: gpt\n  seq: 1000000\noptimize: {flash-attention: off}", NULL,
         "'t.yaml' line 3: the attention scores would hold train.batch_size 8 x model.heads 8 x model.seq 1000000 x "
         "model.seq "
         "1000000 = 6.4e+13 numbers, and the most is 1.1e+12; make one of them smaller, or set "
         "optimize.flash-attention to on"},
        {"model: {arch: gpt, vocab: 16777216}\ntrain: {batch_size: 1024}\noptimize: {passes: none}", NULL,
         "'t.yaml' line 2: the logits would hold train.batch_size 1024 x model.seq 128 x model.vocab 16777216 = "
         "2.2e+12 "
         "numbers, and the most is 1.1e+12; make one of them smaller, or set optimize.fuse-loss to on"},
        {GPT "eval: {batch_size: 1048576}\n", "model.ffn=65536",
         "--set model.ffn=65536: the feed-forward layer would hold eval.batch_size 1048576 x model.seq 128 x model.ffn "
         "65536 = "
         "8.8e+12 numbers, and the most is 1.1e+12; make one of them smaller"},
        {"model: {arch: gpt, dim: 65536, layers: 1024}", NULL,
         "'t.yaml' line 1: the model has 5.3e+13 parameters, and the most is 1.1e+12; make model.dim 65536, "
         "model.layers 1024, "
         "model.ffn 262144 or model.vocab 0 smaller"},
    };
    EXPECT_REFUSALS(table);
}

static void test_refuses_sets(void **state)
{
    (void)state;
    static const struct refusal table[] = {
        {GPT, "model.dim=250",
         "--set model.dim=250: model.heads is 8, and 8 does not divide model.dim 250; try 5 or 10"},
        {GPT, "model.heads=6",
         "--set model.heads=6: model.heads is 6, and 6 does not divide model.dim 256; try 4 or 8"},
        {GPT, "train", "--set train: write it as key=value, like --set train.lr=1e-3"},
        {GPT, "=3", "--set =3: write it as key=value, like --set train.lr=1e-3"},
        {GPT, "", "--set : write it as key=value, like --set train.lr=1e-3"},
        {GPT, "train=3", "--set train=3: train is a section; set one of its keys, like train.batch_size"},
        {GPT, "trian.lr=3", "--set trian.lr=3: there is no key 'trian.lr'; did you mean 'train.lr'?"},
        {GPT, "train.lr=fast", "--set train.lr=fast: train.lr is 'fast'; a number is wanted"},
        {GPT, "train.lr=", "--set train.lr=: train.lr has no value; a number is wanted"},
        {GPT, "train.lr=\"1\"", "--set train.lr=\"1\": train.lr is the text \"1\"; write a number, without quotes"},
        {GPT, "train.lr=20", "--set train.lr=20: train.lr is 20; it must be from 0 to 10"},
        {GPT, "train.lr=[]", "--set train.lr=[]: train.lr is '[]'; a number is wanted"},
        {GPT, "data.source=text",
         "--set data.source=text: data.source is text, and data.path is empty; set data.path to the file to read"},
        {GPT, "data.path=\xFFx",
         "--set data.path=\uFFFDx: data.path is '\uFFFDx', with a control character or a byte that is not UTF-8 at "
         "position 1"},
        {GPT, "data.path=a\xED\xA0\x80",
         "--set data.path=a\uFFFD\uFFFD\uFFFD: data.path is 'a\uFFFD\uFFFD\uFFFD', with a control character "
         "or a byte that is not UTF-8 at position 2"},
        {GPT, "optimize.fuse-qvk=off",
         "--set optimize.fuse-qvk=off: there is no key 'optimize.fuse-qvk'; did you mean 'optimize.fuse-qkv'?"},
        {GPT, "optimize.passes=fuse-qkv,,",
         "--set optimize.passes=fuse-qkv,,: optimize.passes: there is no pass ''; choose all, none or from " PASSES},
        {GPT, "optimize.passes=[fuse-qkv,flash-atention]",
         "--set optimize.passes=[fuse-qkv,flash-atention]: optimize.passes: there is no pass 'flash-atention'; did you "
         "mean 'flash-attention'?"},
        {"model:\n  arch: gpt\n  heads: 6", "model.dim=100",
         "--set model.dim=100: model.heads is 6, and 6 does not divide model.dim 100; try 5 or 10"},
    };
    EXPECT_REFUSALS(table);
}

static void test_refuses_lists(void **state)
{
    (void)state;
    static const struct refusal table[] = {
        {"model:\n  arch: k1\n  tree:\n  - 3\n  - many\n", NULL, "'t.yaml' line 5: model.tree holds 'many'; a list of whole numbers is wanted"},
        {"model: {arch: k1, tree: [3, 1]}", NULL, "'t.yaml' line 1: model.tree holds 1; it must be from 2 to 64"},
        {"model: {arch: k1, tree: [3, 99999999999999999999]}", NULL,
         "'t.yaml' line 1: model.tree holds 99999999999999999999; it must be from 2 to 64"},
        {"model: {arch: k1, tree: [3, '3']}", NULL, "'t.yaml' line 1: model.tree holds the text \"3\"; write a number, without quotes"},
        {"model: {arch: k1, tree: [3, [3]]}", NULL, "'t.yaml' line 1: model.tree holds what is a list; write whole numbers"},
        {"model: {arch: k1, tree: [3, !env x]}", NULL, "'t.yaml' line 1: model.tree has the YAML tag '!env'; write it without a tag"},
        {"model: {arch: k1, tree: {a: 3}}", NULL, "'t.yaml' line 1: model.tree is a section; a list of whole numbers is wanted"},
        {"model: {arch: k1, tree: }", NULL, "'t.yaml' line 1: model.tree has no value; a list of whole numbers is wanted"},
        {"model: {arch: k1, tree: '3'}", NULL, "'t.yaml' line 1: model.tree is the text \"3\"; write a list of whole numbers, without quotes"},
        {"model: {arch: k1, tree: [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]}", NULL,
         "'t.yaml' line 1: model.tree holds more than 16 whole numbers"},
        {GPT, "model.tree=3,,3", "--set model.tree=3,,3: model.tree holds ''; a list of whole numbers is wanted"},
        {GPT, "model.tree=[3, 0x3]", "--set model.tree=[3, 0x3]: model.tree holds '0x3'; a list of whole numbers is wanted"},
        {GPT, "model.tree=", "--set model.tree=: model.tree has no value; a list of whole numbers is wanted"},
    };
    EXPECT_REFUSALS(table);
}

static void test_refuses_domains(void **state)
{
    (void)state;
    static const struct refusal table[] = {
        {GPT "data:\n  domains:\n  - prose\n  - cod\n", NULL, "'t.yaml' line 5: data.domains holds 'cod', and there is no such "
         "file; choose prose, code, formulas or a text file; did you mean 'code'?"},
        {GPT "data: {domains: [prose, /nowhere/x.txt]}", NULL, "'t.yaml' line 2: data.domains holds '/nowhere/x.txt', and there is no "
         "such file; choose prose, code, formulas or a text file"},
        {GPT, "data.domains=prose;code", "--set data.domains=prose;code: data.domains holds 'prose;code', and there is no such file; "
         "choose prose, code, formulas or a text file"},
        {GPT, "data.domains=prose,,code", "--set data.domains=prose,,code: data.domains holds '', and there is no such file; choose "
         "prose, code, formulas or a text file"},
        {GPT "data: {domains: {a: b}}", NULL,
         "'t.yaml' line 2: data.domains is a section; a list of prose, code, formulas or text files is wanted"},
        {GPT "data: {domains: [code, prose, code]}", NULL, "'t.yaml' line 2: data.domains holds 'code' twice; name each once"},
        {GPT "data: {domains: []}", NULL, "'t.yaml' line 2: data.domains is empty; a list of prose, code, formulas or text files is "
         "wanted, or no domains at all"},
        {GPT, "data.domains=[ ]", "--set data.domains=[ ]: data.domains is empty; a list of prose, code, formulas or text files is "
         "wanted, or no domains at all"},
        {GPT, "data.domains=", "--set data.domains=: data.domains has no value; a list of prose, code, formulas or text files is wanted"},
        {GPT "data: {domains: [\"a\\tb\"]}", NULL, "'t.yaml' line 2: data.domains holds 'a b', with a control character or a byte "
         "that is not UTF-8 at position 2"},
        {GPT "data:\n  domain: prose\n  domains: [code]\n", NULL,
         "'t.yaml' line 4: data.domains and data.domain are both given, and either says what the data is; remove one"},
        {GPT "data: {domains: [code], source: bin, path: x.bin}", NULL,
         "'t.yaml' line 2: data.domains and data.source are both given, and either says what the data is; remove one"},
        {GPT "data: {domains: [code], path: x}", NULL,
         "'t.yaml' line 2: data.domains and data.path are both given, and either says what the data is; remove one"},
        {GPT "data:\n  domains: [code]\n  val_fraction: 0\n", NULL, "'t.yaml' line 4: data.val_fraction is 0, and what is forgotten "
         "of data.domains is measured on their validation parts; it must be above 0"},
        {GPT "data: {domains: [code]}\ntrain: {epochs: 2}", NULL, "'t.yaml' line 3: train.epochs is 2, and each of data.domains is "
         "learned for train.steps; remove epochs"},
        {GPT "data: {domains: [code]}\neval: {every: 1 epoch}", NULL, "'t.yaml' line 3: eval.every is in epochs, and every one of "
         "data.domains has epochs of its own; give steps"},
        {GPT "data: {domains: [code]}\ncheckpoint: {every: 1 epoch}", NULL, "'t.yaml' line 3: checkpoint.every is in epochs, and "
         "every one of data.domains has epochs of its own; give steps"},
        {GPT "data: {domains: [code, prose]}\ntrain: {steps: 2147483647}", NULL, "'t.yaml' line 3: train.steps is 2147483647 for each "
         "of 2 data.domains; at most 2147483647 steps can be counted"},
        {GPT "data: {domains: [code, prose]}\ntrain: {steps: 10, warmup: 21}", NULL, "'t.yaml' line 3: train.warmup is 21, and "
         "training ends after a stage for each of data.domains with train.steps 10; it must be at most that"},
    };
    EXPECT_REFUSALS(table);
}

#define K1 "model: {arch: k1, tree: [3, 3]}\n"

static void test_refuses_trees(void **state)
{
    (void)state;
    static const struct refusal table[] = {
        {"model: {arch: k1}", NULL, "'t.yaml' line 1: model.tree is empty, and arch k1 is a tree; try [3, 3]"},
        {"model:\n  arch: postln\n  tree: [3, 3]\n", NULL,
         "'t.yaml' line 3: model.tree is [3, 3], and only arch k1 is a tree; remove it, or choose arch: k1"},
        {"model:\n  arch: k1\n  layers: 12\n  tree: [3, 3]\n", NULL,
         "'t.yaml' line 3: model.layers is 12, and model.tree [3, 3] has 13 nodes; remove layers or make it 13"},
        {K1, "model.layers=4", "--set model.layers=4: model.layers is 4, and model.tree [3, 3] has 13 nodes; remove layers or make it 13"},
        {"model: {arch: k1, tree: [64, 64]}", NULL, "'t.yaml' line 1: model.tree [64, 64] has more than 1024 nodes; make it smaller"},
        {"model: {arch: k1, tree: [2, 2, 2, 2, 2, 2, 2, 2, 2, 2]}", NULL,
         "'t.yaml' line 1: model.tree [2, 2, 2, 2, 2, 2, 2, 2, 2, 2] has more than 1024 nodes; make it smaller"},
        {K1 "k1:\n  k: 14\n", NULL, "'t.yaml' line 3: k1.k is 14, and model.tree [3, 3] has 13 nodes; it must be at most that"},
        {"model: {arch: k1, tree: [3]}", NULL, "'t.yaml' line 1: k1.k is 5, and model.tree [3] has 4 nodes; it must be at most that"},
        {K1 "k1: {k: 0}", NULL, "'t.yaml' line 2: k1.k is 0; it must be from 1 to 1024"},
        {K1 "k1: {every: 0}", NULL, "'t.yaml' line 2: k1.every is 0; it must be from 1 to 1000000"},
        {K1 "k1: {score: max}", NULL, "'t.yaml' line 2: k1.score is 'max'; choose l2 or sum"},
        {K1 "k1: {select: path}", NULL, "'t.yaml' line 2: k1.select is 'path'; choose norm, random or all"},
        {K1 "k1: {select: randm}", NULL, "'t.yaml' line 2: k1.select is 'randm'; choose norm, random or all; did you mean 'random'?"},
    };
    EXPECT_REFUSALS(table);
}

/* Of two overrides that disagree, the later one is to blame; the file's keys only when no override is involved. */
#define REGIONS "model: {arch: regions, segments: 3, dim: 16, heads: 2, seq: 11}\ndata: {source: regions, region: 4}\n"

static void test_refuses_regions(void **state)
{
    (void)state;
    static const struct refusal table[] = {
        {"model: {arch: llama, rope_scaling: llama3, rope_low: 0, rope_high: 4}", NULL,
         "'t.yaml' line 1: model.rope_low is 0, and model.rope_scaling is llama3, which divides by it; it must be above 0"},
        {"model: {arch: regions, segments: 3}", NULL,
         "'t.yaml' line 1: model.arch is regions, which reads transitions, and data.source is corpus; set data.source to regions"},
        {GPT "data:\n  source: regions", NULL,
         "'t.yaml' line 3: data.source is regions, and model.arch gpt reads tokens; set model.arch to regions, or data.source to corpus"},
        {REGIONS, "model.segments=2", "--set model.segments=2: model.segments is 2, and tokens of regions have 3 types; make it 3"},
        {REGIONS, "model.vocab=80",
         "--set model.vocab=80: model.vocab is 80, and regions have 83 ids: start, end and 81 cells; remove it, or make it 83"},
        {REGIONS, "data.region=5", "--set data.region=5: model.seq is 11, and a sample of two regions of data.region 5 has up to 13 tokens; it must be "
                                   "at least that"},
        {REGIONS, "model.head=tied", "--set model.head=tied: model.head is tied, and arch regions has no head of words; remove it"},
        {REGIONS, "model.positions=10",
         "--set model.positions=10: model.positions is 10, and samples have model.seq 11 tokens; it must be at least that, or 0"},
        {REGIONS, "data.path=a", "--set data.path=a: data.path is 'a', and data.source is regions, which reads no file; set data.source to text or "
                                 "bin, or remove data.path"},
        {REGIONS, "data.group=2", "--set data.group=2: data.group is 2, and data.bucket is 0: batches are of model.seq tokens whatever is in them; set "
                                  "data.bucket, or remove data.group"},
        {GPT "data: {pack: on}", NULL, "'t.yaml' line 2: data.pack is on, and data.samples is windows: all of them fill their row; remove it, or set "
                                      "data.samples to lines"},
        {REGIONS, "data.pack=yes", "--set data.pack=yes: data.pack is 'yes'; choose off or on"},
        {GPT "data: {samples: lines, pack: on, bucket: 16, group: 2}", NULL,
         "'t.yaml' line 2: data.pack and data.group are both given, and samples that share rows need not be of like length; remove data.group"},
        {"model: {arch: llama, positions: 200}", NULL,
         "'t.yaml' line 1: model.positions is 200, and arch llama rotates instead of learning positions; remove it"},
        {GPT "data:\n  bucket: 16", NULL, "'t.yaml' line 3: data.bucket is 16, and data.samples is windows: all of them have model.seq tokens; remove "
                                          "it, or set data.samples to lines"},
        {"model: {arch: gpt, seq: 1000}\ndata: {samples: lines, bucket: 2}", NULL,
         "'t.yaml' line 2: data.bucket is 2, and model.seq 1000 would have 500 lengths, with a program each; it must be 16 or more"},
        {GPT "data: {samples: lines, bucket: 16, group: 2, domains: [prose, code]}", NULL,
         "'t.yaml' line 2: data.group is 2, and samples would be sorted across the borders of data.domains; remove data.group"},
    };
    EXPECT_REFUSALS(table);
}

static void test_set_blame(void **state)
{
    (void)state;
    static const char *const sets[] = {"model.heads=6", "model.dim=250"}, *const swapped[] = {"model.dim=250",
                                                                                              "model.heads=6"};
    struct config c;
    struct error err = {0};
    assert_int_equal(config_parse(&c, "t.yaml", GPT, strlen(GPT), sets, 2, &err), BAD_INPUT);
    assert_string_equal(err.text,
                        "--set model.dim=250: model.heads is 6, and 6 does not divide model.dim 250; try 5 or 10");
    assert_int_equal(config_parse(&c, "t.yaml", GPT, strlen(GPT), swapped, 2, &err), BAD_INPUT);
    assert_string_equal(err.text,
                        "--set model.heads=6: model.heads is 6, and 6 does not divide model.dim 250; try 5 or 10");
}

static void test_sizes_of_text(void **state)
{
    (void)state;
    const size_t size = CONFIG_TEXT_MAX + 1;
    char *text = malloc(size), path[1200], set[1400];
    struct config c;
    struct error err = {0};
    const char *sets[] = {set};
    assert_non_null(text);
    memset(text, '#', size);
    assert_int_equal(config_parse(&c, "t.yaml", text, size, NULL, 0, &err), BAD_INPUT);
    assert_string_equal(err.text,
                        "'t.yaml': it has 1048577 bytes, and a config has at most 1048576; is it the right file?");
    memcpy(text, GPT, strlen(GPT));
    assert_int_equal(config_parse(&c, "t.yaml", text, size - 1, NULL, 0, &err), OK);

    memset(path, 'p', sizeof path);
    path[1024] = '\0';
    snprintf(set, sizeof set, "train.init=%s", path);
    assert_int_equal(config_parse(&c, "t.yaml", GPT, strlen(GPT), sets, 1, &err), BAD_INPUT);
    assert_non_null(strstr(err.text, ": train.init has 1024 bytes; a value has at most 1023"));
    path[1023] = '\0';
    snprintf(set, sizeof set, "train.init=%s", path);
    assert_int_equal(config_parse(&c, "t.yaml", GPT, strlen(GPT), sets, 1, &err), OK);
    assert_string_equal(c.train.init, path);
    free(text);
}

/* Many nodes are refused before libyaml spends its quadratic time on them. */
static void test_many_nodes(void **state)
{
    (void)state;
    char *text;
    size_t length;
    struct config c;
    struct error err = {0};
    FILE *f = open_memstream(&text, &length);
    for (int i = 0; i < 40000; i++)
        fprintf(f, "a%d: &a%d 1\n", i, i);
    fclose(f);
    assert_int_equal(config_parse(&c, "t.yaml", text, length, NULL, 0, &err), BAD_INPUT);
    assert_string_equal(err.text,
                        "'t.yaml' line 2048: more than 4096 keys and values up to here; is it the right file?");
    free(text);
}

static void test_long_file_name(void **state)
{
    (void)state;
    char name[1000];
    struct config c;
    struct error err = {0};
    memset(name, 'n', sizeof name);
    strcpy(name + sizeof name - 6, ".yaml");
    assert_int_equal(config_parse(&c, name, "model: {}", 9, NULL, 0, &err), BAD_INPUT);
    assert_non_null(strstr(err.text, "nnn.yaml' line 1: model.arch is missing; choose gpt, llama, postln, k1 or regions"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refuses_types),
        cmocka_unit_test(test_refuses_ranges),
        cmocka_unit_test(test_refuses_keys),
        cmocka_unit_test(test_refuses_yaml),
        cmocka_unit_test(test_refuses_contradictions),
        cmocka_unit_test(test_refuses_sets),
        cmocka_unit_test(test_refuses_lists),
        cmocka_unit_test(test_refuses_domains),
        cmocka_unit_test(test_refuses_trees),
        cmocka_unit_test(test_refuses_regions),
        cmocka_unit_test(test_set_blame),
        cmocka_unit_test(test_sizes_of_text),
        cmocka_unit_test(test_many_nodes),
        cmocka_unit_test(test_long_file_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
