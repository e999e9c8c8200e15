#include "apps/serve/options.h"

#include <cstdlib>

#include "base/file.h"

namespace bloomery {

std::string ServeCommand::key() const {
  if (!api_key_file.empty()) {
    std::string key = read_file(api_key_file);
    key.erase(key.find_last_not_of(" \t\r\n") + 1);
    check(!key.empty(), api_key_file, " is empty: write a key into it");
    return key;
  }
  const char* const variable = std::getenv("BLOOMERY_API_KEY");
  return !api_key.empty() ? api_key : variable != nullptr ? variable : "";
}

ServiceOptions ServeCommand::service() const {
  return {.api_key = key(),
          .local_names = is_local(),
          .request_seconds = request_seconds,
          .log_prompts = log_prompts,
          .max_tokens = max_tokens_to_oom};
}

HttpLimits ServeCommand::limits() const {
  return {.body_bytes = static_cast<std::size_t>(body_kib) << 10,
          .connections = static_cast<unsigned>(connections)};
}

void describe(OptionTable& t, ServeCommand& o) {
  t.section("where");
  t.add("host", o.host,
        "Address to listen at. Any but this machine's own needs a key: --api-key-file.");
  t.add("port", o.port, "0: any that is free; the first line of the output says which.",
        between(0, 65535));
  t.add("api-key-file", o.api_key_file,
        "A file with the key that clients send (Authorization: Bearer KEY).");
  t.add("api-key", o.api_key,
        "The key itself, which others on this machine can see in the list of processes; the "
        "variable BLOOMERY_API_KEY hides it.");
  t.add("insecure-no-auth", o.insecure, "Listen at any address without a key.");
  t.section("model");
  t.add("served-model-name", o.name, "What clients call the model; its folder's name by default.");
  t.add("chat-template", o.chat_template, "A Jinja file instead of the model's own chat template.");
  t.section("limits");
  t.add("max-sequences", o.num_sequences,
        "Maximum concurrent sequences: 256 on a GPU, 64 on a CPU by default.", between(1, 4096))
      .alias("max-num-seqs");
  t.add("max-length", o.max_length,
        "Maximum context length, prompt and new tokens; by default what the model was trained for, "
        "8192 at most.",
        at_least(2))
      .alias("max-model-len");
  t.add(
      "cache-tokens", o.cache_tokens,
      "Size of the KV cache in tokens, in pages of 64. A sequence waits until there are pages for "
      "its prompt and max_tokens. By default what fits into --kv-cache-free-memory-fraction, up "
      "to --max-sequences times --max-length.",
      at_least(0));
  t.add("kv-cache-free-memory-fraction", o.memory_fraction,
        "Part of the memory that the weights leave free which the KV cache may take: 0.9 on a GPU, "
        "0.25 on a CPU by default.",
        {.minimum = 0, .maximum = 1, .minimum_allowed = false})
      .alias("kv-cache-free-gpu-memory-fraction");
  t.add("prompt-piece", o.prompt_piece,
        "Prefill tokens per scheduler step. 0: 2048 on a GPU, 512 on a CPU.", between(0, 1 << 20));
  t.add("max-waiting", o.max_waiting, "Maximum queued requests; more are answered by 503.",
        between(1, 1 << 20));
  t.add("max-connections", o.connections, "Maximum concurrent connections.", between(1, 65536));
  t.add("max-body-kib", o.body_kib, "Maximum size of a request.", between(1, 1 << 20));
  t.add("max-tokens-to-oom", o.max_tokens_to_oom,
        "Of Megatron's PUT /api: maximum number of prompts times their length.", at_least(1));
  t.add("request-seconds", o.request_seconds, "Timeout of a request.", above(0));
  t.add("drain-seconds", o.drain_seconds, "Time for requests in flight after SIGTERM.",
        at_least(0));
  t.section("output");
  t.add("log-prompts", o.log_prompts, "Log what clients send.");
  describe(t, o.ranks);
  describe(t, o.model);
}

std::vector<std::string> contradictions(const ServeCommand& o) {
  std::vector<std::string> found = contradictions(o.ranks);
  if (!o.api_key.empty() && !o.api_key_file.empty()) {
    found.emplace_back("--api-key and --api-key-file cannot be given together");
  }
  if (!o.is_local() && o.key().empty() && !o.insecure) {
    found.push_back(concat("--host ", o.host,
                           " lets others reach the server: give --api-key-file FILE, or "
                           "--insecure-no-auth to let anybody in"));
  }
  return found;
}

}  // namespace bloomery
