# For tests of whole runs, which source it: a folder that goes with the test, a corpus, and ways to end.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
test_name=$(basename "$0")

fail() {
  echo "$test_name: $*" >&2
  tail -n 20 "$folder/log" >&2 || true
  exit 1
}

missing() { # WHAT: a program that is not here; what needs it is left out, unless all are required
  [[ -z ${BLOOMERY_REQUIRE_PROGRAMS:-} ]] || fail "$1 is missing: tools/install_packages test"
  echo "$test_name: left out what needs $1; tools/install_packages test brings it"
}

make_stories() { # PROGRAM COUNT: $folder/tokenizer and the corpus $folder/stories_text_document
  "$1" data stories --count "$2" --output "$folder/stories.jsonl" >/dev/null
  "$1" tokenizer train --vocab-size 300 --input "$folder/stories.jsonl" --output "$folder/tokenizer" >/dev/null 2>&1
  "$1" preprocess --append-eod --input "$folder/stories.jsonl" --tokenizer "$folder/tokenizer" \
    --output-prefix "$folder/stories" >/dev/null 2>&1
}
