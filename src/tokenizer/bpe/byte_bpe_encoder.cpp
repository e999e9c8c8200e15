#include "tokenizer/bpe/byte_bpe.h"
#include "tokenizer/bpe/scanners.h"

namespace bloomery {

void ByteBpeEncoder::encode(std::string_view text, std::vector<TokenId>& ids) {
  IdOutput output(ids, text.size());
  with_scanner(pattern_, [&](auto scanner) { encode_pieces<decltype(scanner)>(text, output); });
}

void ByteBpeEncoder::encode_piece(std::string_view piece, std::vector<TokenId>& ids) {
  IdOutput output(ids, piece.size());
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
void ByteBpeEncoder::encode_pieces(std::string_view text, IdOutput& output) {
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

inline void ByteBpeEncoder::add(const Word& word, Kind kind, IdOutput& output) {
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

void ByteBpeEncoder::add_new(std::string_view bytes, Kind kind, IdOutput& output) {
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
    const bool is_token = merge(bytes) == 1 && static_cast<TokenId>(parts_[0]) == token;
    reached = is_token ? Reached::yes : Reached::no;
  }
  return reached == Reached::yes;
}

void ByteBpeEncoder::add_segments(std::string_view piece, IdOutput& output) {
  const ByteBpe::BytePairs& neighbours = model_.neighbours();
  std::size_t start = 0;
  for (std::size_t at = 1; at <= piece.size(); ++at) {
    if (at < piece.size() && neighbours[ByteBpe::pair_of(piece[at - 1], piece[at])]) continue;
    add(word_at(piece, start, at, Kind::segment), Kind::segment, output);
    start = at;
  }
}

// Leaves the ids that the bytes become in parts_, and returns how many.
std::size_t ByteBpeEncoder::merge(std::string_view bytes) {
  if (model_.drops_bytes_) {
    kept_.clear();
    for (const char byte : bytes) {
      if (model_.id_of_byte_[static_cast<unsigned char>(byte)] >= 0) kept_.push_back(byte);
    }
    bytes = kept_;
  }
  parts_.resize(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    parts_[i] =
        static_cast<std::uint32_t>(model_.id_of_byte_[static_cast<unsigned char>(bytes[i])]);
  }
  const ByteBpe::BytePairs& neighbours = model_.neighbours();
  const auto find = [&](std::size_t left, std::size_t right, std::size_t end) {
    if (!neighbours[ByteBpe::pair_of(bytes[right - 1], bytes[right])]) return Join{};
    return model_.joins_.find(model_.tokens_, bytes.substr(left, end - left), right - left);
  };
  return merger_.merge(find, parts_.data(), parts_.size());
}

void ByteBpeEncoder::add_merged(std::string_view bytes, IdOutput& output) {
  const std::size_t count = merge(bytes);
  TokenId* ids = output.room(count);
  for (std::size_t i = 0; i < count; ++i) ids[i] = static_cast<TokenId>(parts_[i]);
  output.advance(count);
}

}  // namespace bloomery
