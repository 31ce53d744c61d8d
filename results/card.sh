#!/bin/bash
# All that is said about graphics cards, on this machine, in ten minutes: the tests on the card, a thousand random patterns, the frozen list with its rates,
# first matches, many patterns at once, and the study of regular expressions with its section about cards. Results go to results/card.
#
#   results/card.sh [FOLDER]        FOLDER instead of results/card
#   EXECUTABLES=DIR results/card.sh takes the executables cuda, lines, card and lightfoot from there, for machines without Rust
set -uo pipefail
cd "$(dirname "$0")/.."
folder=$(realpath -m "${1:-results/card}")
mkdir -p "$folder"
name=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -1 | tr 'A-Z ' 'a-z-')
base=$folder/${name:-no-card}-$(date +%F)
failed=0

# run NAME SECONDS ARGUMENT…: an executable of ours, built where none is given
run() {
    local what=$1 limit=$2
    shift 2
    if [[ -n ${EXECUTABLES:-} ]]; then
        timeout "$limit" "$EXECUTABLES/$what" "$@"
        return
    fi
    case $what in
    cuda | lines) timeout "$limit" cargo test -q --release -p lightfoot-pattern --test "$what" -- "$@" ;;
    card) timeout "$limit" cargo bench -q -p lightfoot-pattern --bench card -- "$@" ;;
    lightfoot) timeout "$limit" cargo run -q --release -p lightfoot -- "$@" ;;
    esac
}

# Rates first: nothing else runs beside them.
run card 330 | tee "$base.md" || failed=1
run lightfoot 60 study regex --quick --output "$folder" || failed=1

# The tests, side by side where the executables are there; cargo lets them wait for each other.
{
    export PATTERN_CARD_CASES=${PATTERN_CARD_CASES:-1000} PATTERN_REAL_CARD_ONLY=1
    run cuda 200 random_patterns --nocapture
} > "$base-random.txt" 2>&1 &
random=$!
{ run cuda 180 --skip random_patterns; } > "$base-tests.txt" 2>&1 || failed=1
{ run lines 180; } > "$base-lines.txt" 2>&1 || failed=1
wait $random || failed=1
{
    printf '\n## Tests on the card\n\n'
    for part in tests lines random; do
        sed -n "s/^[0-9]* of [0-9]* patterns have/- random patterns: &/p; s/^test result/- $part/p" "$base-$part.txt"
    done
} | tee -a "$base.md"
(( failed )) && echo "something failed or ran out of time: see $base-*.txt" >&2
exit $failed
