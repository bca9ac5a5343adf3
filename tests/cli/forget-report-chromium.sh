# The page of hone forget in a real browser: it loads without an error or a request, its charts have content, keys reach its marks.
. "$(dirname "$0")/lib"
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "there is no Chromium here"
python3 -c 'import base64, fcntl, json, select, subprocess' 2>python.err || skip "this Python has too few modules: $(tail -1 python.err)"
writer=$(dirname "$HONE")/tests/test_forget_report
[ -x "$writer" ] || skip "there is no $writer"

"$writer" --write reports || fail "the reports were not written"
PYTHONDONTWRITEBYTECODE=1 python3 "$HONE_SOURCE/tests/cli/forget-report-chromium.py" "$browser" reports || fail "the page is not as expected"
