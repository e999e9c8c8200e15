// Text from a model: sampled in batches of prompts of unequal length, or by beam search.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "generate/sequence_decoder.h"
#include "ops/sampling/sampling.h"

namespace bloomery {

// Why a sequence ended: an end token, a stop string, the asked number of tokens, or the model's
// last position.
enum class Finish : std::uint8_t { end, stop, length, positions };

struct GenerateOptions {
  std::int64_t max_new_tokens = 64;
  SamplingOptions sampling;
  std::int64_t num_beams = 1;      // more than one: beam search instead of sampling
  double length_penalty = 1;       // of beams: scores are divided by length^penalty
  std::vector<std::string> stops;  // texts that end a sequence; none is empty
  std::vector<TokenId> eos_ids;    // tokens that end a sequence
  std::optional<TokenId> start;    // of what a model with an encoder writes
  std::optional<TokenId> unseen;   // a token that what follows it does not see
  bool recompute = false;          // without a cache

  bool is_end(TokenId token) const;
  // What ends a sequence that has room for this many tokens and has used it.
  Finish out_of_room(std::int64_t room) const;
};

struct Request {
  std::int64_t prompt = 0, sample = 0;  // their numbers decide what is drawn
  std::vector<TokenId> tokens;          // of the prompt, at least one; an encoder reads them
};

struct Generation {
  std::int64_t prompt = 0, sample = 0;
  std::vector<TokenId> ids;              // new ones, with the end token if there is one
  std::vector<float> log_probabilities;  // of each, as the model gives them
  std::string text;                      // of the new tokens, without end token and stop string
  Finish finish = Finish::length;
  double score = 0;  // of a beam: sum of its scores / length^penalty
};

class Generator {
 public:
  // Everything referred to must outlive the generator.
  Generator(const Model& model, Stream& stream, Mesh& mesh, const Tokenizer& tokenizer,
            const GenerateOptions& options);

  // Gets the text of request number `index` piece by piece, each whole characters.
  using OnText = std::function<void(std::size_t index, const std::string& text)>;

  // All requests as one batch; results in their order. Requests with the same prompt number have
  // the same tokens, which are computed once. Sequences that end leave the batch.
  std::vector<Generation> sample(std::span<const Request> requests, const OnText& on_text = {});

  // The best beams of one prompt, best first, at most num_beams: as Hugging Face's beam search
  // with early_stopping=False.
  std::vector<Generation> beams(const Request& request, std::int64_t count);

  // How many tokens can follow a prompt of this length: max_new_tokens, or what the model has
  // positions for (each but the last new token is fed to the model). An Error when the prompt
  // itself is too long; `number` names it.
  std::int64_t room(std::int64_t prompt_length, std::int64_t number) const;

 private:
  Decoder make_decoder(std::int64_t num_sequences, std::int64_t capacity) const;
  bool has_encoder() const { return Model::decoder_begin(model_.options()) > 0; }
  // What the decoder starts with, and what the text goes on from.
  std::vector<TokenId> beginning(const Request& request) const;
  std::span<const TokenId> continued(const Request& request) const;
  void feed(Decoder& decoder, const std::vector<std::vector<TokenId>>& prompts) const;

  const Model& model_;
  Stream& stream_;
  Mesh& mesh_;
  const Tokenizer& tokenizer_;
  GenerateOptions options_;
};

}  // namespace bloomery
