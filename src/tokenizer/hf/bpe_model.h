// BPE over characters, as Hugging Face has it: unknown characters, bytes as a last resort, marks
// for where words go on or end. Byte-level text goes to the engine of bpe/byte_bpe.h.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tokenizer/bpe/byte_bpe.h"
#include "tokenizer/bpe/merge.h"
#include "tokenizer/hf/json_fields.h"
#include "tokenizer/hf/model.h"

namespace bloomery::hf {

class BpeModel : public Model {
 public:
  explicit BpeModel(const Fields& fields);
  std::unique_ptr<ModelEncoder> make_encoder() const override;

  // The model as bytes; null when it cannot be read so: a character that spells no byte, marks, or
  // a rule for unknown characters that the engine does not have.
  const ByteBpe* bytes() const { return bytes_.get(); }

 private:
  friend class BpeModelEncoder;

  void read_merges(const nlohmann::json& array, std::vector<Merge>& merges) const;
  Merge merge_of(std::string_view left, std::string_view right, std::size_t rank) const;
  void index_characters();
  void make_byte_engine(std::span<const Merge> merges);
  bool words_stay_apart(std::span<const Merge> merges) const;

  std::optional<TokenId> unknown_;
  std::string unknown_name_, continuation_, ending_;
  bool fuse_unknown_, byte_fallback_, whole_piece_first_;
  // No merge joins a word with the U+2581 that begins the next, so that words may be encoded one
  // by one even though no pre-tokenizer divides them.
  bool words_apart_ = false;
  std::unordered_map<char32_t, TokenId> characters_;  // tokens of one character
  std::array<TokenId, 0x250> low_characters_;         // the same for the first of them; -1: none
  std::array<TokenId, 256> byte_tokens_;              // <0x00> ...; -1: none
  std::optional<MergeTable> merges_;
  std::unique_ptr<ByteBpe> bytes_;
};

}  // namespace bloomery::hf
