# The programs of this folder with the real torch: by the Python that HONE_TEST_PYTHON names, or by python3 where that has torch and pytest.
# Exit code 77, which CTest counts as skipped, where there is none.
set -eu
PYTHON=${HONE_TEST_PYTHON:-python3}
"$PYTHON" -c 'import torch, pytest' 2>/dev/null || { echo "skipped: '$PYTHON' has no torch and pytest; name one that has: HONE_TEST_PYTHON"; exit 77; }
HONE=$(realpath "${HONE:?is not set: the path of the program under test}")
export HONE PYTHONDONTWRITEBYTECODE=1
exec "$PYTHON" -m pytest -q -p no:cacheprovider "$(dirname "$0")" "$@"
