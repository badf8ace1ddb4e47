# Fail for a seventh of the tests with loops, and crash for a seventh of those with calls.
printf . >> "$TESTS_RUN"
read -r seed words < "$1"
sleep "0.0${NAP%.*}"
case "$((seed % 7)) $words" in
    "3 --loops"*) echo "bad loop" >&2; exit 3 ;;
    "4 "*--calls*) kill -s SEGV $$ ;;
esac
