#include <algorithm>

#include "tokenizer/bpe/byte_bpe.h"
#include "tokenizer/bpe/scanners.h"

namespace bloomery {

// The end of a vector of ids, written through a pointer: room is made for many ids at a time.
class ByteBpeEncoder::Output {
 public:
  // A text of `bytes` is to come.
  Output(std::vector<TokenId>& ids, std::size_t bytes)
      : ids_(ids), size_(ids.size()), step_(std::min<std::size_t>(bytes / 4 + 8, kMaxStep)) {}
  ~Output() { ids_.resize(size_); }  // shrinks: does not throw
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Where `count` ids can be written; those that advance() then counts are kept.
  TokenId* room(std::size_t count) {
    if (size_ + count > ids_.size()) [[unlikely]] {
      ids_.resize(size_ + count + step_);
    }
    return ids_.data() + size_;
  }
  void advance(std::size_t count) { size_ += count; }
  void push(TokenId id) {
    *room(1) = id;
    ++size_;
  }
  std::size_t size() const { return size_; }
  std::span<const TokenId> since(std::size_t start) const {
    return {ids_.data() + start, size_ - start};
  }

 private:
  static constexpr std::size_t kMaxStep = 4096;
  std::vector<TokenId>& ids_;
  std::size_t size_, step_;
};

void ByteBpeEncoder::encode(std::string_view text, std::vector<TokenId>& ids) {
  Output output(ids, text.size());
  with_scanner(pattern_, [&](auto scanner) { encode_pieces<decltype(scanner)>(text, output); });
}

void ByteBpeEncoder::encode_piece(std::string_view piece, std::vector<TokenId>& ids) {
  Output output(ids, piece.size());
  if (!piece.empty()) add(word_at(piece, 0, piece.size(), Kind::piece), Kind::piece, output);
}

inline ByteBpeEncoder::Word ByteBpeEncoder::word_at(std::string_view text, std::size_t begin,
                                                    std::size_t end, Kind kind) {
  const std::string_view bytes = text.substr(begin, end - begin);
  if (bytes.size() > WordKey::kMaxLength) return {bytes, {}};
  return {bytes,
          WordKey::of(bytes.data(), bytes.size(), text.size() - begin, kind == Kind::segment)};
}

// Some pieces ahead of those that are looked up, so that the cache's memory is there by then.
template <class Scanner>
void ByteBpeEncoder::encode_pieces(std::string_view text, Output& output) {
  constexpr std::size_t kAhead = 16;
  Word words[kAhead];
  for (std::size_t at = 0; at < text.size();) {
    std::size_t count = 0;
    for (; count < kAhead && at < text.size(); ++count) {
      const std::size_t end = Scanner::next(text, at);
      words[count] = word_at(text, at, end, Kind::piece);
      cache_.prefetch(words[count].key);
      at = end;
    }
    for (std::size_t i = 0; i < count; ++i) add(words[i], Kind::piece, output);
  }
}

inline void ByteBpeEncoder::add(const Word& word, Kind kind, Output& output) {
  if (word.bytes.size() > WordKey::kMaxLength) {
    add_new(word.bytes, kind, output);
    return;
  }
  const std::size_t found = cache_.find(word.key, output.room(WordCache::kMaxIds));
  if (found > 0) [[likely]] {
    output.advance(found);
    return;
  }
  const std::size_t start = output.size();
  add_new(word.bytes, kind, output);
  cache_.insert(word.key, output.since(start));
}

void ByteBpeEncoder::add_new(std::string_view bytes, Kind kind, Output& output) {
  const TokenId token = model_.tokens_.id_of(bytes);
  if (token >= 0 &&
      ((model_.options_.whole_piece_first && kind == Kind::piece) || is_reached(bytes, token))) {
    output.push(token);
  } else if (kind == Kind::piece && bytes.size() > WordKey::kMaxLength) {
    add_segments(bytes, output);
  } else {
    add_merged(bytes, output);
  }
}

bool ByteBpeEncoder::is_reached(std::string_view bytes, TokenId token) {
  Reached& reached = reached_[static_cast<std::size_t>(token)];
  if (reached == Reached::unknown) {
    const bool is_token = merge(bytes) == 1 && model_.id_of_part(parts_[0]) == token;
    reached = is_token ? Reached::yes : Reached::no;
  }
  return reached == Reached::yes;
}

void ByteBpeEncoder::add_segments(std::string_view piece, Output& output) {
  std::size_t start = 0;
  for (std::size_t at = 1; at <= piece.size(); ++at) {
    if (at < piece.size() &&
        model_.may_join_[static_cast<std::size_t>(static_cast<unsigned char>(piece[at - 1])) << 8 |
                         static_cast<unsigned char>(piece[at])]) {
      continue;
    }
    add(word_at(piece, start, at, Kind::segment), Kind::segment, output);
    start = at;
  }
}

// Leaves the parts that the bytes become in parts_, and returns how many.
std::size_t ByteBpeEncoder::merge(std::string_view bytes) {
  parts_.clear();
  for (const char byte : bytes) {
    const auto part = static_cast<unsigned char>(byte);
    if (!model_.drops_bytes_ || model_.id_of_byte_[part] >= 0) parts_.push_back(part);
  }
  return merger_.merge(model_.rules_, parts_.data(), parts_.size());
}

void ByteBpeEncoder::add_merged(std::string_view bytes, Output& output) {
  const std::size_t count = merge(bytes);
  TokenId* ids = output.room(count);
  for (std::size_t i = 0; i < count; ++i) {
    ids[i] = model_.id_of_part(parts_[i]);
  }
  output.advance(count);
}

}  // namespace bloomery
