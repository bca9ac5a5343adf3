"""Checks the pages of hone simulate in Chromium; see simulate-chromium.sh.
usage: simulate-chromium.py BROWSER FOLDER, where FOLDER has sample/ and hostile/."""
import json, os, sys

from chromium import TIP, check, check_looks, with_page

SECTIONS = "[...document.querySelectorAll('main > section')].map(e => e.id)"


def texts(selector):
    return f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)"


def count(selector):
    return f"document.querySelectorAll({json.dumps(selector)}).length"


def checks(b):
    folder = os.path.realpath(sys.argv[2])
    data = json.load(open(folder + "/sample/report.json"))
    b.open(folder + "/sample/report.html")
    check("sections", b.value(SECTIONS), ["overview", "scaling", "by-ranks", "by-bucket"])
    check("title", b.value("document.title"), "fixture · hone simulate")
    check("headline", b.value("document.querySelector('h1').textContent"), data["headline"])
    check("tiles", [t.replace("\u00a0", " ") for t in b.value(texts(".tile .value"))[:2]], ["60.9 %", "30.4 ms"])
    check("a dot per number of ranks and line", b.value(count("#scaling circle")), 14)
    check("lines", b.value(count("#scaling .scaling-line")), 2)
    check("rows", b.value(count("#by-ranks tbody tr")), 7)
    check("rows of buckets", b.value(count("#by-bucket tbody tr")), 6)
    b.focus("#scaling svg")
    b.press("ArrowLeft")
    check("a point by key", b.value(TIP), "32 ranks")
    b.press("Escape")
    check_looks(b)
    check("no complaints", b.complaints(), [])

    b.open(folder + "/hostile/report.html")
    check("parts of one rank", b.value(SECTIONS), ["overview", "scaling", "by-ranks"])
    check("names stay text", [b.value("document.images.length"), b.value("document.scripts.length")], [0, 3])
    check("the name", b.value("document.querySelector('#where').textContent"), lambda t: t.startswith("<img src=x onerror=alert(1)>"))
    check_looks(b)
    check("no complaints about markup", b.complaints(), [])


with_page(sys.argv[1], os.path.realpath(sys.argv[2]), checks)
