// Lines to tokens on many threads with the results in input order: one thread reads, workers
// encode, the caller takes the results. What waits between them is bounded, and so is memory.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/preprocess/chunk_encoder.h"

namespace bloomery {

struct PipelineOptions {
  std::vector<std::string> files;
  LineFormat format = LineFormat::automatic;
  ChunkEncoderOptions encode;
  TokenType type = TokenType::u16;
  int workers = 0;  // 0: one per core that this process may use
};

// What the caller's thread does.
struct PipelineCaller {
  std::function<void(const EncodedChunk&)> take;        // each chunk, in input order
  std::function<void(const std::string& file)> opened;  // before the first chunk of a file
  std::function<bool()> go_on;  // asked ten times a second or more; false stops
};

// Returns true when all input was taken, false when go_on stopped it. An exception of any thread
// stops the others and comes out of here.
bool run_pipeline(const Tokenizer& tokenizer, const PipelineOptions& options,
                  const PipelineCaller& caller);

}  // namespace bloomery
