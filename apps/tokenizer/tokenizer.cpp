#include "apps/tokenizer/tokenizer.h"

#include "apps/common/command_line.h"
#include "tokenizer/load.h"

namespace bloomery {
namespace {

void print_special(std::ostream& out, const Tokenizer& tokenizer, const char* name,
                   const std::optional<TokenId>& id) {
  if (id) out << name << ": " << *id << " " << tokenizer.piece(*id) << '\n';
}

}  // namespace

int tokenizer(const Arguments& arguments, std::ostream& out) {
  return dispatch("bloomery tokenizer",
                  {
                      {"encode", "Encode text to token ids", tokenizer_encode},
                      {"decode", "Decode token ids to text", tokenizer_decode},
                      {"train", "Train a tokenizer on text", tokenizer_train},
                      {"info", "Print vocabulary size and special tokens", tokenizer_info},
                  },
                  arguments, out);
}

int tokenizer_info(const Arguments& arguments, std::ostream& out) {
  TokenizerOptions options;
  OptionTable table;
  describe(table, options);
  if (!read_options(
          table, arguments, out,
          "usage: bloomery tokenizer info --tokenizer PATH\n\nPrints vocabulary size and special "
          "tokens.\n\nexample:\n  bloomery tokenizer info --tokenizer run/tokenizer\n")) {
    return 0;
  }
  const std::shared_ptr<const Tokenizer> loaded = load_tokenizer(options);
  const SpecialTokens& special = loaded->special();
  out << "vocabulary: " << loaded->vocab_size() << '\n';
  print_special(out, *loaded, "bos", special.bos);
  print_special(out, *loaded, "eos", special.eos);
  print_special(out, *loaded, "pad", special.pad);
  print_special(out, *loaded, "unk", special.unk);
  print_special(out, *loaded, "cls", special.cls);
  print_special(out, *loaded, "sep", special.sep);
  print_special(out, *loaded, "mask", special.mask);
  print_special(out, *loaded, "end of document", special.eod);
  return 0;
}

}  // namespace bloomery
