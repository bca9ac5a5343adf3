# hone config: keys, a whole config, and an example that trains.
. "$(dirname "$0")/lib"

ok config train.lr
cat >want <<'TEXT'
  train.lr                   highest learning rate
                             default 3.0e-4; 0 to 10
TEXT
same "hone config train.lr" out want
ok config train
[ "$(sed -n 1p out | cut -c1-7)" = "train: " ] || fail "no heading: $(head -1 out)"
grep -q '^  train.batch_size ' out && ! grep -q '^  model.dim ' out || fail "not the keys of train"
ok config
keys=$(grep -c '^| `' "$HONE_SOURCE/docs/config.md")
[ "$(grep -c '^  [a-z]' out)" = "$keys" ] || fail "not all of the $keys keys are shown"

# An example has every key, and is a config.
ok config --example
cp out my.yaml
[ "$(grep -cE '^ *(# )?[a-z0-9_-]+: .*  *# ' my.yaml)" -ge "$keys" ] || fail "keys are missing in the example"
ok config my.yaml
cp out whole.yaml
ok config whole.yaml
same "a whole config, read and written again" out whole.yaml
ok train my.yaml --steps 1 --out run --set model.dim=16 --set model.layers=1 --set model.seq=16 --set model.heads=2 --set data.chars=20000 --set eval.every=0

tiny
ok config tiny.yaml --set train.lr=0.5
grep -qx '  lr: 0.5' out && grep -qx '  weight_decay: .*' out || fail "not the whole config: $(cat out)"
run config trian
[ "$code" = 2 ] && grep -q "^hone: there is no config 'trian': looked for 'trian.yaml' in " err || fail "exit code $code: $(cat err)"
grep -q '; or did you mean `hone config train`?$' err || fail "no word about the section: $(cat err)"
refused 2 "hone: there is no key 'train.lrr'; did you mean 'train.lr'?" config train.lrr
refused 2 "hone: there is no key 'eval.foo'; section eval has every, batches and batch_size" config eval.foo
run config train.yaml
[ "$code" = 2 ] && grep -q "^hone: there is no file 'train.yaml' in " err || fail "a file's name is taken for a key: $(cat err)"

# What would be left out is refused.
refused 2 "hone: --example shows every key at its default, and not 'quickstart'; leave one of them out" config quickstart --example
refused 2 "hone: --example shows every key at its default; leave --set model.dim=128 out, or name a config: hone config CONFIG --set model.dim=128" config --example --set model.dim=128
for of in train train.lr ''; do
    refused 2 "hone: --set model.dim=128 changes a config, and this lists keys; name a config: hone config CONFIG --set model.dim=128" config $of --set model.dim=128
done
