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
          .max_tokens = max_tokens_to_oom,
          .defaults = defaults};
}

HttpLimits ServeCommand::limits() const {
  return {.body_bytes = static_cast<std::size_t>(body_kib) << 10,
          .connections = static_cast<unsigned>(connections)};
}

namespace {

void describe_defaults(OptionTable& t, RequestDefaults& o) {
  t.section("requests that say nothing");
  t.add("out-seq-length", o.max_tokens,
        "Maximum new tokens, up to the room there is; none: 16 for a completion, 64 for PUT /api, "
        "the room there is for a chat.",
        at_least(1))
      .alias("max-new-tokens");
  t.add("temperature", o.temperature, "Sampling temperature; 0: greedy decoding; none: 1.",
        between(0, 100));
  t.add("top-k", o.top_k, "Sample from the k likeliest tokens; 0 and none: all.",
        between(0, INT32_MAX));
  t.add("top-p", o.top_p,
        "Nucleus sampling: the likeliest tokens whose probabilities sum to p; 0 and none: all.",
        between(0, 1));
}

}  // namespace

void describe(OptionTable& t, ServeCommand& o) {
  t.section("where");
  t.add("host", o.host,
        "Address to listen on. Any but 127.0.0.1, ::1 and localhost needs a key: --api-key-file.");
  t.add("port", o.port,
        "Port to listen on; 0: a free port, printed in the first line of the output.",
        between(0, 65535));
  t.add("api-key-file", o.api_key_file,
        "File with the API key that clients send (Authorization: Bearer KEY).");
  t.add("api-key", o.api_key,
        "API key. Other users of this machine can see it in the process list; the variable "
        "BLOOMERY_API_KEY hides it.");
  t.add("insecure-no-auth", o.insecure, "Listen on any address without an API key.");
  t.section("model");
  t.add("served-model-name", o.name,
        "Name of the model for clients; none: the name of its folder.");
  t.add("chat-template", o.chat_template, "Chat template, a Jinja file; none: the model's own.");
  t.section("limits");
  t.add("max-sequences", o.num_sequences,
        "Maximum concurrent sequences; none: 256 on a GPU, 64 on a CPU.", between(1, 4096))
      .alias("max-num-seqs");
  t.add("max-length", o.max_length,
        "Maximum context length (prompt and new tokens); none: the model's, up to 8192.",
        at_least(2))
      .alias("max-model-len");
  t.add("cache-tokens", o.cache_tokens,
        "Size of the KV cache in tokens, in pages of 64. A request waits until there are pages for "
        "its prompt and max_tokens. 0: what fits into --kv-cache-free-memory-fraction, up to "
        "--max-sequences times --max-length.",
        at_least(0));
  t.add("kv-cache-free-memory-fraction", o.memory_fraction,
        "Fraction of the free memory for the KV cache; none: 0.9 on a GPU, 0.25 on a CPU.",
        {.minimum = 0, .maximum = 1, .minimum_allowed = false})
      .alias("kv-cache-free-gpu-memory-fraction");
  t.add("prompt-piece", o.prefill_chunk,
        "Prefill tokens per scheduler step; 0: 2048 on a GPU, 512 on a CPU.", between(0, 1 << 20));
  t.add("max-waiting", o.max_waiting,
        "Maximum queued requests; further ones are answered with 503.", between(1, 1 << 20));
  t.add("max-connections", o.connections, "Maximum concurrent connections.", between(1, 65536));
  t.add("max-body-kib", o.body_kib, "Maximum size of a request in KiB.", between(1, 1 << 20));
  t.add("max-tokens-to-oom", o.max_tokens_to_oom,
        "Megatron's PUT /api: maximum number of prompts times their length.", at_least(1));
  t.add("request-seconds", o.request_seconds, "Timeout of a request in seconds.", above(0));
  t.add("drain-seconds", o.drain_seconds, "Seconds to finish requests in flight after SIGTERM.",
        at_least(0));
  describe_defaults(t, o.defaults);
  t.section("output");
  t.add("log-prompts", o.log_prompts, "Log the prompts of clients.");
}

std::vector<std::string> contradictions(const OptionTable&, const ServeCommand& o) {
  std::vector<std::string> found;
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
