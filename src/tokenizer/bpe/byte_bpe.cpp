#include "tokenizer/bpe/byte_bpe.h"

#include <algorithm>

#include "base/error.h"
#include "tokenizer/bpe/byte_alphabet.h"

namespace bloomery {
namespace {

constexpr TokenId kDropped = -1;
constexpr std::uint32_t kNoPart = UINT32_MAX;

// How merging arrives at a token from its bytes alone. In any text the bytes of a token merge as
// they do alone until something merges across its ends, so that this is the only pair from which
// the token is ever made, and other merges with the same result can be forgotten.
struct Derivation {
  Merge last;
  std::uint32_t index;  // in the vocabulary
};

class Deriver {
 public:
  Deriver(const ByteVocabulary& vocabulary, std::span<const Merge> merges) : table_(merges) {
    for (int byte = 0; byte < 256; ++byte) {
      const char letter = static_cast<char>(byte);
      id_of_byte_[byte] = vocabulary.find({&letter, 1}).value_or(kDropped);
    }
  }

  // Whether merging the token's bytes gives the token; then scratch().last is the last merge.
  bool derives(const ByteToken& token) {
    parts_.clear();
    for (const char byte : token.bytes) {
      parts_.push_back(id_of_byte_[static_cast<unsigned char>(byte)]);
    }
    if (std::ranges::find(parts_, kDropped) != parts_.end()) return false;
    table_.apply(parts_, scratch_);
    return parts_.size() == 1 && parts_[0] == token.id;
  }
  const Merge& last() const { return scratch_.last; }

 private:
  MergeTable table_;
  MergeScratch scratch_;
  TokenId id_of_byte_[256];
  std::vector<TokenId> parts_;
};

}  // namespace

ByteBpe::ByteBpe(std::vector<ByteToken> vocabulary, std::span<const Merge> merges,
                 const ByteBpeOptions& options)
    : vocabulary_(std::move(vocabulary)), options_(options) {
  check(merges.size() + 256 <= PairTable::kMaxParts ||
            vocabulary_.tokens().size() + 256 <= PairTable::kMaxParts,
        "the vocabulary has ", vocabulary_.tokens().size(), " tokens; at most ",
        PairTable::kMaxParts - 256, " are supported");
  for (const Merge& merge : merges) {
    const std::string_view left = vocabulary_.bytes(merge.left),
                           right = vocabulary_.bytes(merge.right);
    const std::string_view whole = vocabulary_.bytes(merge.result);
    check(!left.empty() && !right.empty() && whole.size() == left.size() + right.size() &&
              whole.starts_with(left) && whole.ends_with(right),
          "the merge of '", spell_bytes(left), "' and '", spell_bytes(right), "' to '",
          spell_bytes(whole),
          "' names a token that is not in the vocabulary or not the two joined");
  }
  number_parts(merges);
  note_neighbours();
}

void ByteBpe::number_parts(std::span<const Merge> merges) {
  id_of_part_.assign(256, options_.unknown.value_or(kDropped));
  merges_to_itself_.assign(vocabulary_.tokens().size(), false);
  std::vector<std::uint32_t> part_of_id(static_cast<std::size_t>(vocabulary_.id_limit()), kNoPart);
  std::vector<Derivation> derivations;
  Deriver deriver(vocabulary_, merges);
  for (std::uint32_t i = 0; i < vocabulary_.tokens().size(); ++i) {
    const ByteToken& token = vocabulary_.token(i);
    if (token.bytes.size() == 1) {
      const auto byte = static_cast<unsigned char>(token.bytes[0]);
      id_of_part_[byte] = token.id;
      part_of_id[static_cast<std::size_t>(token.id)] = byte;
      merges_to_itself_[i] = true;
    } else if (deriver.derives(token)) {
      derivations.push_back({deriver.last(), i});
      merges_to_itself_[i] = true;
    }
  }
  drops_bytes_ = std::ranges::find(id_of_part_, kDropped) != id_of_part_.end();
  std::ranges::sort(derivations, {}, [](const Derivation& d) { return d.last.rank; });
  for (const Derivation& derivation : derivations) {
    const TokenId id = vocabulary_.token(derivation.index).id;
    part_of_id[static_cast<std::size_t>(id)] = static_cast<std::uint32_t>(id_of_part_.size());
    id_of_part_.push_back(id);
  }
  std::vector<PairTable::Pair> pairs;
  pairs.reserve(derivations.size());
  for (const Derivation& derivation : derivations) {
    const auto part = [&](TokenId id) { return part_of_id[static_cast<std::size_t>(id)]; };
    const Merge& merge = derivation.last;
    pairs.push_back({part(merge.left), part(merge.right), part(merge.result)});
  }
  pairs_ = PairTable(pairs);
}

void ByteBpe::note_neighbours() {
  if (drops_bytes_) {  // then bytes that are not neighbours in the text may become so
    may_join_.set();
    return;
  }
  for (std::uint32_t i = 0; i < vocabulary_.tokens().size(); ++i) {
    const std::string& bytes = vocabulary_.token(i).bytes;
    if (!merges_to_itself_[i]) continue;
    for (std::size_t at = 0; at + 1 < bytes.size(); ++at) {
      may_join_.set(static_cast<std::size_t>(static_cast<unsigned char>(bytes[at])) << 8 |
                    static_cast<unsigned char>(bytes[at + 1]));
    }
  }
}

std::string ByteBpe::decode(std::span<const TokenId> ids) const {
  std::string text;
  for (const TokenId id : ids) {
    const std::string_view bytes = vocabulary_.bytes(id);
    check(!bytes.empty(), "token id ", id, " is not in the vocabulary (ids go up to ",
          vocabulary_.id_limit() - 1, ")");
    text.append(bytes);
  }
  return text;
}

}  // namespace bloomery
