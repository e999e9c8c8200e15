// How many sequences a server computes at a time and how large its KV cache is, where flags do not
// say so: from the memory that the weights leave.
#pragma once

#include "apps/serve/options.h"
#include "generate/engine.h"

namespace bloomery {

// Runs some prompts through the model, to see what it takes.
EngineOptions engine_options(const ServeCommand& command, LoadedModel& model);

// Until all are answered; an Error says which flags make the cache smaller.
void run_prompts(Engine& engine, const std::vector<EngineRequest>& requests);

// Tokens of a cache that may take so many bytes: whole pages, at least for one sequence of the
// maximum length, at most for as many as there can be.
std::int64_t cache_tokens(double bytes, std::size_t page_bytes, const EngineOptions& options);

}  // namespace bloomery
