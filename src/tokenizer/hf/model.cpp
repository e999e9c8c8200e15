#include "tokenizer/hf/model.h"

#include "base/error.h"
#include "config/json_fields.h"
#include "tokenizer/bpe/byte_alphabet.h"
#include "tokenizer/hf/bpe_model.h"
#include "tokenizer/hf/word_models.h"

namespace bloomery::hf {

void ModelEncoder::encode_bytes(std::string_view piece, std::vector<TokenId>& ids) {
  encode(spell_bytes(piece), ids);
}

std::unique_ptr<Model> read_model(const JsonFields& fields, ModelTables& tables, bool of_bytes) {
  std::string type = fields.find<std::string>("type").value_or("");
  if (type.empty()) {
    type = fields.has("merges")                            ? "BPE"
           : tables.vocab_kind == ModelTables::Kind::array ? "Unigram"
           : fields.has("max_input_chars_per_word")        ? "WordPiece"
           : fields.has("continuing_subword_prefix")       ? "WordPiece"
                                                           : "WordLevel";
  }
  if (type == "BPE") return read_bpe(fields, tables, of_bytes);
  if (type == "WordLevel") return read_word_level(fields, tables);
  if (type == "WordPiece") return read_word_piece(fields, tables);
  if (type == "Unigram") return read_unigram(fields, tables);
  throw Error(concat("model of type '", type, "' is not known"));
}

}  // namespace bloomery::hf
