"""Checks the pages of hone forget in Chromium; see forget-report-chromium.sh.
usage: forget-report-chromium.py BROWSER FOLDER, where FOLDER has sample/, empty/ and hostile/ (test_forget_report --write)."""
import json, os, sys

from chromium import TIP, check, check_looks, with_page

SECTIONS = ["overview", "tradeoff", "configs", "matrices", "tree", "over-time", "by-domain", "comparisons"]


def texts(selector):
    return f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)"


def count(selector):
    return f"document.querySelectorAll({json.dumps(selector)}).length"


def box(selector, n=0):
    return f"(() => {{ const r = document.querySelectorAll({json.dumps(selector)})[{n}].getBoundingClientRect(); return [(r.left + r.right) / 2, (r.top + r.bottom) / 2, r.height]; }})()"


def check_first_screen(b, data):
    check("title", b.value("document.title"), "5 configs × 3 seeds · hone forget")
    check("headline", b.value("document.querySelector('h1').textContent"), data["headline"])
    check("answers", b.value(texts(".tile .value"))[:2], ["yes", "yes"])
    check("who learned most", b.value(texts(".tile p"))[2], lambda t: t.startswith("forget-tree13"))
    check("the reasons", b.value("document.querySelector('#verdicts').textContent"),
          lambda t: data["verdicts"][0]["random_words"] in t and data["verdicts"][0]["all_words"] in t)


def check_tradeoff(b, data):
    check("a mark per run", b.value(count("#tradeoff .run")), 15)
    check("a mean per config", b.value(count("#tradeoff .mean")), 5)
    at = [b.value(box("#tradeoff .mean", i)) for i in range(5)]
    by = {c["name"]: at[i] for i, c in enumerate(data["configs"])}
    check("who learned more is to the right", by["forget-tree13"][0] > by["forget-tree5"][0] > by["forget-random5"][0])
    check("who forgot more is above", by["forget-baseline13"][1] < by["forget-tree13"][1] < by["forget-tree5"][1])
    check("the line from random choice to all", b.value(count("#tradeoff line.ceiling")), 1)
    check("shapes differ", len(set(b.value("[...document.querySelectorAll('#tradeoff .mean')].map(e => e.getAttribute('d'))"))), 5)
    b.focus("#tradeoff svg")
    b.press("ArrowRight")
    check("a run by key", b.value(TIP), "forget-baseline4, seed 1")
    b.press("Escape")
    check("Escape closes it", b.value(TIP), None)


def check_tables(b, data):
    check("a row per config", b.value(count("#configs .scroll:nth-of-type(1) tbody tr")), 5)
    row = b.value(texts("#configs tbody tr:nth-child(4) td"))
    check("tree5", row[:6], ["forget-tree5", "5 of 13 nodes, by gradient", "3", "0.270 ± 0.008", "3.105 ± 0.008", "0.820 ± 0.020"])
    check("five matrices", b.value(count("#matrices table")), 5)
    check("framed is the own stage", b.value(texts("#matrices table:first-of-type .own"))[:3], ["0.700+0.200", "0.550+0.300", "1.300+0.300"])
    b.mouse_over("#matrices td.own")
    check("a cell under the mouse", b.value(TIP), "forget-baseline4: prose after prose")
    check("comparisons", b.value(texts("#comparisons tbody tr td:last-child")),
          ["beats it", "not comparable: one learned more and forgot more", "not comparable: one learned more and forgot more", "beats it"])


def check_nodes(b, data):
    check("13 circles", b.value(count("#tree .node-mark")), 13)
    check("12 branches", b.value(count("#tree .branch")), 12)
    check("the root is above its children", b.value(box("#tree .node", 0))[1] < b.value(box("#tree .node", 1))[1])
    b.focus("#tree .node")
    check("a node by key", b.value(TIP), "Node 0")
    check("its share by domain", b.value("document.querySelector('#tip').textContent"), lambda t: "38.5" in t and "updated in code20.0" in t.replace("\u00a0", ""))
    b.press("Escape")
    check("cells of the heat map", b.value(count("#over-time .heat-cell")), 13 * 12)
    shades = "[...new Set([...document.querySelectorAll('#over-time .heat-cell')].map(e => e.style.fill))].length"
    check("two shares", b.value(shades), 2)
    b.value("[...document.querySelectorAll('#over-time button')].find(e => e.textContent === 'Gradient norm').click()")
    check("thirteen norms", b.value(shades), 13)
    check("bars by domain", b.value(count("#by-domain .domain-bar")), 39)
    check("chance", b.value(texts("#by-domain .peak-label")), ["chance 5/13"])
    b.value("[...document.querySelectorAll('#by-domain button')].find(e => e.textContent === 'forget-tree13').click()")
    check("all nodes", b.value(texts("#by-domain .peak-label")), ["chance 13/13"])


def checks(b):
    folder = os.path.realpath(sys.argv[2])
    data = json.load(open(folder + "/sample/report.json"))
    b.open(folder + "/sample/report.html")
    check("sections", b.value("[...document.querySelectorAll('main > section')].map(e => e.id)"), SECTIONS)
    check_first_screen(b, data)
    check_tradeoff(b, data)
    check_tables(b, data)
    check_nodes(b, data)
    check_looks(b)
    check("no complaints", b.complaints(), [])

    b.open(folder + "/empty/report.html")
    check("parts of nothing", b.value("[...document.querySelectorAll('main > section')].map(e => e.id)"), ["overview", "tradeoff", "configs", "matrices"])
    check("no complaints about nothing", b.complaints(), [])
    b.open(folder + "/hostile/report.html")
    check("names stay text", [b.value("document.images.length"), b.value("document.scripts.length")], [0, 3])
    check("a name", b.value(texts("#configs tbody tr:nth-child(2) td:first-child"))[0], "<img src=x onerror=alert(1)>")
    check_looks(b)
    check("no complaints about markup", b.complaints(), [])


with_page(sys.argv[1], os.path.realpath(sys.argv[2]), checks)
