# Gradient accumulation: every parameter is updated with the mean over the batches of a step, so that two batches of two
# learn what one batch of four does.
. "$(dirname "$0")/lib"

# Whatever the size of the program, what AdamW takes is the mean: the output of a divide.
for arch in gpt llama postln; do
    tiny $arch
    for layers in 1 2 3 5; do
        for dropout in 0 0.1; do
            ok train tiny.yaml --set model.layers=$layers --set model.dropout=$dropout --set train.accumulate=2 --set optimize.fused-optimizer=off \
                --print-program
            awk '$3 == "divide" { for (i = 4; i <= NF; i++) if ($i == "->") mean[$(i + 1)] = 1 }
                 $3 == "adamw" { n++; if (!($7 in mean)) { print; bad = 1 } }
                 END { exit bad || n == 0 }' out >odd ||
                fail "$arch, $layers layers, dropout $dropout: updated with something else than the mean: $(cat odd)"
        done
    done

    ok train tiny.yaml --steps 60 --set train.batch_size=4 --out $arch-4 --json && cp out four.json
    ! grep -q 'sums of gradients' err || fail "$arch: there are no sums: $(cat err)"
    state=$(sed -n 's/.*, optimizer state \([^,]*\),.*/\1/p' err)
    ok train tiny.yaml --steps 60 --set train.accumulate=2 --out $arch-2x2 --json && cp out two.json
    grep -q ", optimizer state $state, sums of gradients " err || fail "$arch: sums of gradients are no state of the optimizer ($state): $(cat err)"
    for f in four two; do sed -n 's/^ *"loss": \([0-9.]*\),$/\1/p' $f.json; done >losses
    python3 - $(cat losses) <<'PY' || fail "$arch: the losses of one batch of 4 and two of 2: $(cat losses)"
import sys
four, two = map(float, sys.argv[1:])
sys.exit(not (1 < four < 4 and abs(four - two) < 1e-4))
PY
done
