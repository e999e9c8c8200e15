// The requests that a server answers: OpenAI's API, Megatron's, health, metrics and the page. What
// takes time, tokens of long prompts above all, is done by a few threads beside the server's.
#pragma once

#include <condition_variable>
#include <deque>
#include <thread>

#include "serve/http.h"
#include "serve/metrics.h"
#include "serve/request_defaults.h"
#include "serve/served_model.h"

namespace bloomery {

struct ServiceOptions {
  std::string api_key;           // empty: none is asked for
  bool local_names = true;       // only for browsers that asked for this machine by a local name
  int num_threads = 2;           // that read requests
  double request_seconds = 600;  // for an answer
  bool log_prompts = false;
  std::int64_t max_tokens = 12000;  // of all prompts and texts of a request to /api
  RequestDefaults defaults;
};

// What answers are made with; all of it outlives them.
struct AnswerTools {
  const ServedModel& model;
  Engine& engine;
  ServerMetrics& metrics;
  const ServiceOptions& options;
};

// Answers later, or throws an ApiError.
void answer_text(const AnswerTools& tools, PromptEncoder& encoder,
                 const std::shared_ptr<HttpExchange>& exchange, bool chat);
// Megatron's PUT /api.
void answer_megatron(const AnswerTools& tools, PromptEncoder& encoder,
                     const std::shared_ptr<HttpExchange>& exchange);
// Throws what an engine that did not accept a request means for a client.
void require_accepted(Engine::Answer answer);

class Service {
 public:
  // All of these must outlive it.
  Service(const ServedModel& model, Engine& engine, const ServiceOptions& options);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // As HttpServer::Handler.
  void handle(const std::shared_ptr<HttpExchange>& exchange);
  // No more answers but to what was asked; health says so.
  void drain() { draining_ = true; }

 private:
  void route(const std::shared_ptr<HttpExchange>& exchange);
  void require_access(const HttpRequest& request) const;
  HttpResponse models() const;
  void work();
  void answer(const std::shared_ptr<HttpExchange>& exchange, PromptEncoder& encoder);

  const ServiceOptions options_;
  const ServedModel& model_;
  ServerMetrics metrics_;
  AnswerTools tools_;
  std::atomic<bool> draining_ = false;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::shared_ptr<HttpExchange>> requests_;
  bool end_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace bloomery
