// Chunks of lines through many threads, with results in input order: readers fill slots, workers
// make results of them, the caller takes the results. What waits between them is bounded, and so is
// memory: slots go round and keep theirs.
//
// The input is a list of streams. Several may be read, and decompressed, at the same time; the
// chunks of a stream are taken in its order, those of different streams as they come.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "text/input/line_reader.h"

namespace bloomery {

struct LineEngineOptions {
  std::vector<ChunkSource*> streams;
  int streams_at_once = 1;  // threads that read
  int workers = 1;
  // Becomes true when the sources should end early. Not one that is true at the start.
  std::atomic<bool>* stop = nullptr;
};

// Slots are numbered from 0; a result may be kept for each.
std::size_t num_slots(const LineEngineOptions& options);

using ChunkWork = std::function<void(const LineChunk& chunk, std::size_t slot)>;

struct LineEngineCalls {
  // Called on the thread of each worker, numbered from 0.
  std::function<ChunkWork(std::size_t worker)> make_worker;
  // On the caller's thread: each chunk after its work.
  std::function<void(std::size_t stream, const LineChunk& chunk, std::size_t slot)> take;
  // On the caller's thread: after the last chunk of a stream. May be empty.
  std::function<void(std::size_t stream)> ended;
  // Asked ten times a second or more; false stops.
  std::function<bool()> go_on;
};

// Returns true when all input was taken, false when go_on stopped it. An exception of any thread
// stops the others and comes out of here.
bool run_line_engine(const LineEngineOptions& options, const LineEngineCalls& calls);

}  // namespace bloomery
