#include "generate/generator.h"

#include <algorithm>
#include <optional>

namespace bloomery {

Generator::Generator(const Model& model, Stream& stream, Mesh& mesh, const Tokenizer& tokenizer,
                     const GenerateOptions& options)
    : model_(model), stream_(stream), mesh_(mesh), tokenizer_(tokenizer), options_(options) {
  check(options.max_new_tokens >= 1 && options.num_beams >= 1, "generation of ",
        options.max_new_tokens, " tokens with ", options.num_beams,
        " beams; both must be at least 1");
  check(!has_encoder() || options.start,
        "a model with an encoder starts to write with a token of its own, which nothing here "
        "names; give --tokenizer");
  for (const std::string& stop : options.stops) {
    check(!stop.empty(), "an empty stop string would end every text at once");
  }
}

bool GenerateOptions::is_end(TokenId token) const {
  return std::find(eos_ids.begin(), eos_ids.end(), token) != eos_ids.end();
}

Finish GenerateOptions::out_of_room(std::int64_t room) const {
  return room < max_new_tokens ? Finish::positions : Finish::length;
}

std::int64_t Generator::room(std::int64_t prompt_length, std::int64_t number) const {
  const auto positions = max_length(model_.options());
  check(!positions || prompt_length <= *positions, "prompt ", number, " has ", prompt_length,
        " tokens, but the model has positions for ", positions.value_or(0),
        ": shorten it, or use a model with more positions");
  const std::int64_t fed = has_encoder() ? 1 : prompt_length;
  return positions ? std::min(options_.max_new_tokens, *positions - fed + 1)
                   : options_.max_new_tokens;
}

std::vector<TokenId> Generator::beginning(const Request& request) const {
  return has_encoder() ? std::vector<TokenId>{*options_.start} : request.tokens;
}

std::span<const TokenId> Generator::continued(const Request& request) const {
  return has_encoder() ? std::span<const TokenId>() : request.tokens;
}

void Generator::feed(Decoder& decoder, const std::vector<std::vector<TokenId>>& prompts) const {
  if (!has_encoder()) {
    return decoder.feed(prompts);
  }
  decoder.read(prompts);
  decoder.feed(std::vector<std::vector<TokenId>>(prompts.size(), {*options_.start}));
}

Decoder Generator::make_decoder(std::int64_t num_sequences, std::int64_t capacity) const {
  return Decoder(
      model_, stream_, mesh_,
      {.num_sequences = num_sequences, .capacity = capacity, .recompute = options_.recompute});
}

}  // namespace bloomery
