// What a user says to `bloomery serve`.
#pragma once

#include "apps/common/model_ranks.h"
#include "serve/http.h"
#include "serve/service.h"

namespace bloomery {

struct ServeCommand : ModelStart {
  std::string host = "127.0.0.1";
  std::int64_t port = 8000;
  std::string api_key, api_key_file;
  bool insecure = false;
  std::string name, chat_template;
  std::int64_t prefill_chunk = 0, max_waiting = 4096;
  std::optional<std::int64_t> max_length;
  std::optional<std::int64_t> num_sequences, cache_tokens;  // none: see engine_room.h
  std::optional<double> memory_fraction;
  std::int64_t connections = 4096, body_kib = 4096;
  double request_seconds = 600, drain_seconds = 30;
  std::int64_t max_tokens_to_oom = 12000;
  bool log_prompts = false;
  RequestDefaults defaults;

  bool is_local() const { return host == "127.0.0.1" || host == "localhost" || host == "::1"; }
  // Of the flags, the file or BLOOMERY_API_KEY; empty: none.
  std::string key() const;
  ServiceOptions service() const;
  HttpLimits limits() const;
};

void describe(OptionTable& table, ServeCommand& command);

// What contradicts what.
std::vector<std::string> contradictions(const OptionTable& table, const ServeCommand& command);

}  // namespace bloomery
