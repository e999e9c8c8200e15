#include "apps/serve/engine_room.h"

#include <algorithm>

#include "device/memory_source.h"

namespace bloomery {
namespace {

struct Silent final : EngineListener {
  bool wanted() const override { return true; }
  void on_token(std::int64_t, const ScoredToken&, const std::string&) override {}
  void on_end(std::int64_t, Finish, const std::string&) override {}
  void on_dropped() override {}
  void on_failure(const std::string& message) override { failure = message; }
  std::string failure;
};

// The largest pieces of prompts that come between two steps, after which the stream keeps what
// their passes take. A CPU's memory has no such end, and its passes take long.
std::vector<EngineRequest> largest_prompts(const EngineOptions& options, bool on_cuda) {
  const std::int64_t length = on_cuda ? std::min(options.prefill_chunk, options.capacity - 1) : 1;
  std::vector<EngineRequest> requests(on_cuda ? 2 : 1);
  for (EngineRequest& request : requests) {
    request.prompt.resize(static_cast<std::size_t>(length));
    request.max_tokens = 1;
  }
  requests.back().score_prompt = on_cuda;
  return requests;
}

}  // namespace

void run_prompts(Engine& engine, const std::vector<EngineRequest>& requests) {
  const auto listener = std::make_shared<Silent>();
  for (const EngineRequest& request : requests) {
    engine.submit(request, listener);
  }
  while (engine.step()) {
  }
  check(listener->failure.empty(), listener->failure, "; the KV cache has room for ",
        engine.num_pages() * kCachePage,
        " tokens: give a smaller --cache-tokens, or smaller --max-sequences and --max-length");
}

std::int64_t cache_tokens(double bytes, std::size_t page_bytes, const EngineOptions& options) {
  const std::int64_t one = cache_pages(options.capacity), most = one * options.num_sequences;
  const double fitting = bytes / static_cast<double>(std::max<std::size_t>(1, page_bytes));
  const std::int64_t pages =
      fitting < static_cast<double>(most) ? static_cast<std::int64_t>(fitting) : most;
  return std::max(one, pages) * kCachePage;
}

EngineOptions engine_options(const ServeCommand& command, LoadedModel& model) {
  const bool on_cuda = model.stream().on_cuda();
  EngineOptions options{.num_sequences = command.num_sequences.value_or(on_cuda ? 256 : 64),
                        .capacity = text_capacity(model, command.max_length),
                        .cache_tokens = command.cache_tokens.value_or(0),
                        .prefill_chunk = command.prefill_chunk > 0 ? command.prefill_chunk
                                         : on_cuda                 ? 2048
                                                                   : 512,
                        .max_waiting = command.max_waiting,
                        .drain_seconds = command.drain_seconds};
  if (options.cache_tokens > 0) {
    return options;
  }
  std::size_t page_bytes = 0;
  {
    EngineOptions small = options;
    small.num_sequences = 1;
    small.max_waiting = 2;
    small.capacity = std::min(options.capacity, options.prefill_chunk + 1);
    Engine engine(model.model(), model.stream(), model.mesh(), model.tokenizer(), small);
    run_prompts(engine, largest_prompts(options, on_cuda));
    page_bytes = engine.page_bytes();
  }
  const double fraction = command.memory_fraction.value_or(on_cuda ? 0.9 : 0.25);
  const auto free_bytes = static_cast<double>(model.device().memory()->free_bytes());
  options.cache_tokens =
      cache_tokens(fraction * free_bytes / model.ranks_on_device(), page_bytes, options);
  return options;
}

}  // namespace bloomery
