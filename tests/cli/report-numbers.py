"""Every number of a profile that follows from another one does: usage: report-numbers.py FOLDER TERMINAL, the folder of hone profile and
what it printed. (JSON is Python but for three words: python3-minimal has no json module.)"""
import re, sys

folder, terminal = sys.argv[1], open(sys.argv[2], encoding="utf-8").read()
WORDS = {"null": None, "true": True, "false": False, "__builtins__": {}}
parse = lambda text: eval(text.strip(), dict(WORDS))
read = lambda name: open(f"{folder}/{name}", encoding="utf-8").read()
j, page, markdown = parse(read("report.json")), read("report.html"), read("report.md")
failures = 0


def check(what, good, *seen):
    global failures
    if not good:
        failures += 1
        print(f"{what}: {seen}", file=sys.stderr)


def near(what, a, b, within=1e-6):
    check(what, abs(a - b) <= within * max(abs(a), abs(b), 1e-9), a, b)


def us_of(text):
    """'12.3 ms' in microseconds."""
    number, unit = text.replace("\u00a0", " ").split(" ")
    return float(number) * {"µs": 1, "ms": 1e3, "s": 1e6}[unit]


total = lambda rows, key: sum(r[key] for r in rows)
step, e, r = j["step"]["median_us"], j["efficiency"], j["recorded"]
model = j["model"]
samples = model["batch"] * max(1, model["accumulate"])

# one step time, and all that is made of it
check("a step", step > 0, step)
near("the parts are of the step", r["us"], step)
near("work and gaps", total(j["ops"], "self_us") + total(r["gaps"], "us"), step)
near("kinds", total(j["kinds"], "self_us"), r["op_self_us"])
near("parts of the model", total(r["parts"], "us"), r["op_self_us"])
near("shares of the parts", total(r["parts"], "share"), 1)
near("the split", total(r["split"], "us") - sum(p["us"] for p in r["split"] if p["name"] == "evaluation"), step)
near("the timeline", j["timeline"]["us"], step)
for event in j["timeline"]["events"]:
    if event[3] == "step":
        near("its step", event[2], step)
near("shares of ops", total(j["ops"], "share") + total(r["gaps"], "share"), 1)
check("no gap is negative", all(g["us"] >= 0 for g in r["gaps"]), r["gaps"])
check("the spread holds the median", j["step"]["p10_us"] <= step <= j["step"]["p90_us"], j["step"])

# speed, from that time alone
near("samples per second", j["step"]["samples_per_s"], samples / step * 1e6)
near("tokens per second", j["step"]["tokens_per_s"], samples * model["seq"] / step * 1e6)
near("FLOP per second", e["model_flops_per_s"], e["model_flops"] / step * 1e6)
near("MFU", e["mfu_percent"], 100 * e["model_flops"] / step / 1e3 / e["mfu_peak_gflops"])
flops, intensity, roofline = (parse(read(n + ".json")) for n in ("flops_profile", "computational_intensity", "roofline_data"))
near("step time of flops_profile.json", flops["performance_metrics"]["step_time_ms"], step / 1e3)
near("MFU of flops_profile.json", flops["efficiency_metrics"]["mfu_percent"], e["mfu_percent"])
near("samples of flops_profile.json", flops["performance_metrics"]["throughput_samples_per_sec"], j["step"]["samples_per_s"])
near("FLOPs by phase", sum(flops["flops_analysis"]["hardware_flops_by_phase"].values()), e["hardware_flops"])
near("bandwidth", intensity["memory_bandwidth_used_gb_per_sec"], e["hardware_bytes"] / step / 1e3)
near("step of roofline_data.json", roofline["step"]["us"], step)

# nothing above 100 %
check("MFU", 0 < e["mfu_percent"] <= 100.0001, e["mfu_percent"])
for row in j["ops"] + j["kinds"]:
    if row["self_us"]:
        near("efficiency", row["efficiency"], row["floor_us"] / row["self_us"])
        check("roofline", row["efficiency"] <= 1.000001, row)
peaks = {p["level"]: p["gb_per_s"] for p in j["machine"]["peaks"]["levels"]}
for op in j["ops"]:
    if op["self_us"] and op["memory_bound"]:
        near("a floor of traffic", op["floor_us"], op["bytes"] / peaks[op["level"]] / 1e3)

# the words name that step, or say that the mean wait for data is in it
texts = [t for t in j["answers"].values() if t] + [f[k] for f in j["findings"] for k in ("cause", "evidence", "fix") if f[k]]
for text in texts:
    for shown, wait in re.findall(r"of its ([\d.]+ (?:µs|ms|s))\b( with the mean wait for data)?", text) + \
            re.findall(r"the ([\d.]+ (?:µs|ms|s)) step( with the mean wait for data)?", text) + \
            re.findall(r"the step from ([\d.]+ (?:µs|ms|s))\b( with the mean wait for data)?", text):
        if wait:
            check("a step with its wait: " + text, us_of(shown) > step, us_of(shown), step)
        else:
            near("a step in words: " + text, us_of(shown), step, 0.006)
    check("no recorded step in words", "recorded" not in text, text)
for name, text, pattern in (("terminal", terminal, r"\n  step +([\d.]+ (?:µs|ms|s)) \("), ("report.md", markdown, r"\| step time \| ([\d.]+ (?:µs|ms|s)) \("),
                            ("report.md, parts", markdown, r"Of the step \(([\d.]+ (?:µs|ms|s))\)")):
    found = re.findall(pattern, text)
    check("a step in " + name, len(found) == 1, found)
    near("the step in " + name, us_of(found[0]) if found else 0, step, 0.006)

# findings: one for each pass, targets that are there, a warning before the advice
rules = {f["rule"] for f in j["findings"]}
check("targets are findings", all(o["target"] is None or o["target"] in rules for o in j["ops"] + j["kinds"]))
passes = [f["pass"] for f in j["findings"] if f["pass"]]
check("one finding for each pass", len(passes) == len(set(passes)), passes)
warning = j["answers"]["warning"]
if warning:
    for name, text in (("terminal", terminal), ("report.md", markdown)):
        text, start = " ".join(text.split()), " ".join(warning.split()[:6])
        check("a warning in " + name, start in text and text.index(start) < text.index("bottleneck"), text[:400])

# the page has the same numbers
shown = parse(re.search(r'<script type="application/json" id="report-data">(.*?)</script>', page, re.S).group(1))
check("the page's data", {k: v for k, v in shown.items()} == j or shown["step"] == j["step"] and shown["recorded"] == j["recorded"])

# memory: nothing of the optimizer's state is a sum of gradients
for point in j["memory"]["points"]:
    check("optimizer state", point["state"] <= 2 * 4 * model["parameters"] + 64, point)
    if model["accumulate"] > 1:
        check("sums of gradients", point["gradients"] >= 4 * model["parameters"], point)
sys.exit(failures > 0)
