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

void read_vocabulary(const nlohmann::json& object, Vocabulary& vocabulary) {
  check(object.is_object(), "model.vocab is not an object of tokens and ids");
  // Ids need not follow one another, but a table by id must not dwarf the file.
  const std::size_t largest = object.size() * 16 + 65536;
  for (const auto& [piece, id] : object.items()) {
    check(id.is_number_unsigned() && id.get<std::uint64_t>() <= largest, "model.vocab: the id of '",
          piece, "' is ", id.dump(), "; it must be a whole number up to ", largest);
    vocabulary.add(piece, id.get<TokenId>());
  }
}

std::unique_ptr<Model> read_model(const nlohmann::json& object) {
  const Fields fields(object, "model");
  std::string type = fields.text_or("type", "");
  if (type.empty()) {
    const nlohmann::json* vocab = fields.find("vocab");
    type = fields.find("merges") != nullptr                      ? "BPE"
           : vocab != nullptr && vocab->is_array()               ? "Unigram"
           : fields.find("max_input_chars_per_word") != nullptr  ? "WordPiece"
           : fields.find("continuing_subword_prefix") != nullptr ? "WordPiece"
                                                                 : "WordLevel";
  }
  if (type == "BPE") return std::make_unique<BpeModel>(fields);
  if (type == "WordLevel") return read_word_level(fields);
  if (type == "WordPiece") return read_word_piece(fields);
  if (type == "Unigram") return read_unigram(fields);
  throw Error(concat("model of type '", type, "' is not known"));
}

}  // namespace bloomery::hf
