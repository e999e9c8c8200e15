// Raw logits of given tokens, so that anyone can compare a model here with the same model
// elsewhere.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "generate/loaded_model.h"

namespace bloomery {

// Sequences of one length, as a file gives them.
struct TokenArrays {
  std::vector<std::vector<TokenId>> rows;
  bool single = false;  // the file has one array rather than a list of them
};

// A .npy of integers (one or two dimensions), JSON (an array, an array of arrays, or one array per
// line), or plain numbers, one sequence per line. Unequal lengths, no numbers, and anything else
// are Errors that name the place.
TokenArrays read_token_arrays(const std::filesystem::path& path);

// float32, [tokens, vocabulary] of a single array, else [sequences, tokens, vocabulary]; columns
// are the real vocabulary. The output appears whole or not at all. Returns the shape. With an
// encoder, which reads `arrays`, the logits are those of what the decoder is given, `decoded`: an
// array for each.
std::vector<std::int64_t> write_logits(LoadedModel& model, const TokenArrays& arrays,
                                       std::int64_t micro_batch_size,
                                       const std::filesystem::path& output,
                                       const TokenArrays& decoded = {});

}  // namespace bloomery
