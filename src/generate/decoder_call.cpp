#include "generate/decoder_call.h"

#include <cstring>
#include <map>

#include "generate/sequence_decoder.h"

namespace bloomery {
namespace {

using Kind = DecoderCall::Kind;

constexpr const char* kTopic = "what decoders do";
constexpr double kDays = 1000.0 * 24 * 3600;  // seconds that nothing may be asked for

class Words {
 public:
  explicit Words(const std::string& bytes) : words_(bytes.size() / sizeof(std::int64_t)) {
    std::memcpy(words_.data(), bytes.data(), words_.size() * sizeof(std::int64_t));
  }
  std::int64_t next() { return words_.at(place_++); }
  template <class T>
  std::vector<T> list() {
    std::vector<T> values(static_cast<std::size_t>(next()));
    for (T& value : values) {
      value = static_cast<T>(next());
    }
    return values;
  }

 private:
  std::vector<std::int64_t> words_;
  std::size_t place_ = 0;
};

template <class T>
void append(std::vector<std::int64_t>& words, const std::vector<T>& values) {
  words.push_back(std::ssize(values));
  words.insert(words.end(), values.begin(), values.end());
}

// The pieces of extend(): slot and length of each, and whether every token's logits are wanted.
std::vector<Decoder::Piece> pieces_of(const DecoderCall& call) {
  std::vector<Decoder::Piece> pieces;
  for (std::size_t i = 0; i < call.tokens.size(); ++i) {
    pieces.push_back({.slot = static_cast<std::int32_t>(call.numbers[1 + 2 * i]),
                      .length = static_cast<std::int32_t>(call.numbers[2 + 2 * i]),
                      .tokens = call.tokens[i]});
  }
  return pieces;
}

void repeat(const DecoderCall& call, Decoder& decoder, Stream& stream) {
  const std::vector<std::int64_t>& numbers = call.numbers;
  const auto small = [&](std::size_t i) { return static_cast<std::int32_t>(numbers.at(i)); };
  switch (call.kind) {
    case Kind::read:
      return decoder.read(call.tokens);
    case Kind::feed:
      return decoder.feed(call.tokens);
    case Kind::extend:
      decoder.extend(pieces_of(call), numbers.at(0) != 0);
      return;
    case Kind::select:
      return decoder.select(numbers);
    case Kind::forget:
      return decoder.forget(numbers.at(0));
    case Kind::set_pages: {
      const std::vector<std::int32_t> pages(numbers.begin() + 1, numbers.end());
      return decoder.set_pages(small(0), pages);
    }
    case Kind::copy_slot:
      return decoder.copy_slot(small(0), small(1), small(2));
    case Kind::step: {
      const StepRows rows = StepRows::empty(stream, numbers.at(1));
      decoder.step(stream, rows, numbers.at(0));
      return;
    }
    case Kind::make:
    case Kind::end:
    case Kind::leave:
      return;
  }
}

}  // namespace

std::string DecoderCall::bytes() const {
  std::vector<std::int64_t> words = {static_cast<std::int64_t>(kind), decoder};
  append(words, numbers);
  words.push_back(std::ssize(tokens));
  for (const std::vector<TokenId>& row : tokens) {
    append(words, row);
  }
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(std::int64_t)};
}

DecoderCall DecoderCall::of_bytes(const std::string& bytes) {
  Words words(bytes);
  DecoderCall call;
  call.kind = static_cast<Kind>(words.next());
  call.decoder = words.next();
  call.numbers = words.list<std::int64_t>();
  call.tokens.resize(static_cast<std::size_t>(words.next()));
  for (std::vector<TokenId>& row : call.tokens) {
    row = words.list<TokenId>();
  }
  return call;
}

void tell(Mesh& mesh, const DecoderCall& call) {
  if (mesh.degree(Axis::tensor) > 1 && mesh.coordinate(Axis::tensor) == 0) {
    mesh.host().gather(kTopic, call.bytes());
  }
}

void dismiss_followers(Mesh& mesh) { tell(mesh, {.kind = Kind::leave}); }

void follow_decoders(const Model& model, Stream& stream, Mesh& mesh) {
  std::map<std::int64_t, Decoder> decoders;
  while (true) {
    const DecoderCall call = DecoderCall::of_bytes(mesh.host().gather(kTopic, {}, kDays).front());
    switch (call.kind) {
      case Kind::leave:
        return;
      case Kind::make:
        decoders.try_emplace(call.decoder, model, stream, mesh,
                             DecoderOptions{.num_sequences = call.numbers.at(0),
                                            .capacity = call.numbers.at(1),
                                            .recompute = call.numbers.at(2) != 0,
                                            .num_pages = call.numbers.at(3)});
        break;
      case Kind::end:
        decoders.erase(call.decoder);
        break;
      default:
        repeat(call, decoders.at(call.decoder), stream);
    }
  }
}

}  // namespace bloomery
