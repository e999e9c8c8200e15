#include "tokenizer/hf/model.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tokenizer/bpe/byte_alphabet.h"
#include "tokenizer/hf/bpe_model.h"
#include "tokenizer/hf/json_fields.h"
#include "tokenizer/hf/word_models.h"

namespace bloomery::hf {

void ModelEncoder::encode_bytes(std::string_view piece, std::vector<TokenId>& ids) {
  encode(spell_bytes(piece), ids);
}

std::unique_ptr<Model> read_model(const nlohmann::json& object, ModelTables& tables,
                                  bool of_bytes) {
  const Fields fields(object, "model");
  std::string type = fields.text_or("type", "");
  if (type.empty()) {
    type = fields.find("merges") != nullptr                      ? "BPE"
           : tables.vocab_kind == ModelTables::Kind::array       ? "Unigram"
           : fields.find("max_input_chars_per_word") != nullptr  ? "WordPiece"
           : fields.find("continuing_subword_prefix") != nullptr ? "WordPiece"
                                                                 : "WordLevel";
  }
  if (type == "BPE") return read_bpe(fields, tables, of_bytes);
  if (type == "WordLevel") return read_word_level(fields, tables);
  if (type == "WordPiece") return read_word_piece(fields, tables);
  if (type == "Unigram") return read_unigram(fields, tables);
  throw Error(concat("model of type '", type, "' is not known"));
}

}  // namespace bloomery::hf
