#include "serve/service.h"

#include <ctime>
#include <nlohmann/json.hpp>

#include "serve/api_error.h"
#include "serve/page.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;

// In a time that says nothing about where they differ.
bool equal(const std::string& a, const std::string& b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^
                  static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()]);
  }
  return difference == 0;
}

// Of "name:port" and "[::1]:port".
std::string name_of(const std::string& host) {
  const std::size_t bracket = host.find(']');
  return bracket != std::string::npos ? host.substr(0, bracket + 1)
                                      : host.substr(0, host.find(':'));
}

struct Route {
  const char* path;
  const char* method;
};
constexpr Route kRoutes[] = {{"/", "GET"},
                             {"/index.html", "GET"},
                             {"/health", "GET"},
                             {"/metrics", "GET"},
                             {"/v1/models", "GET"},
                             {"/v1/completions", "POST"},
                             {"/v1/chat/completions", "POST"},
                             {"/api", "PUT"}};

void require_route(const HttpRequest& request) {
  for (const Route& route : kRoutes) {
    if (request.path == route.path) {
      if (request.method != route.method) {
        throw ApiError(
            405, concat(request.path, " is for ", route.method, ", not for ", request.method));
      }
      return;
    }
  }
  throw ApiError(404, concat("there is no ", request.path, " here"));
}

// Megatron's client looks for a message at the top.
HttpResponse error_response(const ApiError& error, const std::string& path) {
  HttpResponse response{.status = error.status, .body = error.json()};
  if (path == "/api") {
    response.body =
        Json({{"message", error.what()}}).dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  if (error.status == 503) {
    response.headers.emplace_back("Retry-After", "1");
  }
  if (error.status == 401) {
    response.headers.emplace_back("WWW-Authenticate", "Bearer");
  }
  return response;
}

}  // namespace

void require_accepted(Engine::Answer answer) {
  if (answer == Engine::Answer::busy) {
    throw ApiError(503, "too many requests wait already; try again in a moment");
  }
  if (answer == Engine::Answer::closed) {
    throw ApiError(503, "the server is about to end");
  }
}

Service::Service(const ServedModel& model, Engine& engine, const ServiceOptions& options)
    : options_(options), model_(model), tools_{model, engine, metrics_, options_} {
  for (int i = 0; i < options.num_threads; ++i) {
    threads_.emplace_back([this] { work(); });
  }
}

Service::~Service() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  arrived_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void Service::handle(const std::shared_ptr<HttpExchange>& exchange) {
  try {
    route(exchange);
  } catch (const ApiError& error) {
    metrics_.answered(error.status);
    exchange->respond(error_response(error, exchange->request().path));
  }
}

// Pages of other servers may make a browser send requests to this one: they are refused by Origin
// and, where there is no key, by the name that the browser looked up.
void Service::require_access(const HttpRequest& request) const {
  const std::string host = name_of(request.host);
  if (!request.origin.empty()) {
    const std::size_t slashes = request.origin.find("://");
    if (slashes == std::string::npos || request.origin.substr(slashes + 3) != request.host) {
      throw ApiError(403, concat("requests from pages of ", request.origin, " are not answered"));
    }
  }
  if (options_.local_names && !host.empty() && host != "localhost" && host != "127.0.0.1" &&
      host != "[::1]") {
    throw ApiError(403, concat("this server is known as localhost, not as ", host));
  }
  const bool open =
      request.path == "/health" || request.path == "/" || request.path == "/index.html";
  if (!open && !options_.api_key.empty() &&
      !equal(request.authorization, "Bearer " + options_.api_key)) {
    throw ApiError(401, "the API key is missing or wrong: send Authorization: Bearer KEY", "",
                   "invalid_api_key");
  }
}

void Service::route(const std::shared_ptr<HttpExchange>& exchange) {
  const HttpRequest& request = exchange->request();
  require_access(request);
  if (request.path.starts_with("/v1/models/") && request.method == "GET") {
    if (request.path.substr(11) != model_.name()) {
      throw ApiError(404, concat("there is no model ", request.path.substr(11), " here"), "model",
                     "model_not_found");
    }
    const Json model = Json::parse(models().body)["data"][0];
    return exchange->respond({.body = model.dump()});
  }
  require_route(request);
  if (request.path == "/" || request.path == "/index.html") {
    return exchange->respond({.type = "text/html; charset=utf-8",
                              .body = page_html(),
                              .headers = {{"Content-Security-Policy",
                                           "default-src 'none'; style-src 'unsafe-inline'; "
                                           "script-src 'unsafe-inline'; connect-src 'self'; "
                                           "img-src data:; base-uri 'none'; form-action 'none'; "
                                           "frame-ancestors 'none'"}}});
  }
  if (request.path == "/health") {
    return exchange->respond(
        {.status = draining_ ? 503 : 200,
         .body = draining_ ? R"({"status":"draining"})" : R"({"status":"ok"})"});
  }
  if (request.path == "/metrics") {
    return exchange->respond({.type = "text/plain; version=0.0.4; charset=utf-8",
                              .body = metrics_.text(model_.name(), tools_.engine)});
  }
  if (request.path == "/v1/models") {
    return exchange->respond(models());
  }
  if (draining_) {
    require_accepted(Engine::Answer::closed);
  }
  const std::lock_guard lock(mutex_);
  // Who left is forgotten here, too: while the threads are busy others may come and leave.
  std::erase_if(requests_, [](const auto& earlier) { return earlier->left(); });
  requests_.push_back(exchange);
  arrived_.notify_one();
}

HttpResponse Service::models() const {
  const Json model = {{"id", model_.name()},
                      {"object", "model"},
                      {"created", std::time(nullptr)},
                      {"owned_by", "bloomery"},
                      {"max_model_len", tools_.engine.options().capacity},
                      {"has_chat_template", model_.chat() != nullptr}};
  const Json list = {{"object", "list"}, {"data", Json::array({model})}};
  return {.body = list.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

void Service::work() {
  PromptEncoder encoder(model_, tools_.engine.options().capacity);
  std::unique_lock lock(mutex_);
  while (true) {
    arrived_.wait(lock, [&] { return end_ || !requests_.empty(); });
    if (requests_.empty()) {
      return;
    }
    const std::shared_ptr<HttpExchange> exchange = std::move(requests_.front());
    requests_.pop_front();
    lock.unlock();
    answer(exchange, encoder);
    lock.lock();
  }
}

void Service::answer(const std::shared_ptr<HttpExchange>& exchange, PromptEncoder& encoder) {
  const std::string& path = exchange->request().path;
  if (exchange->left()) {
    return;
  }
  if (options_.log_prompts) {
    Log().info(exchange->request().client, " ", path, " ", exchange->request().body);
  }
  try {
    try {
      if (draining_) {
        require_accepted(Engine::Answer::closed);  // it would be read for nothing
      }
      if (path == "/api") {
        answer_megatron(tools_, encoder, exchange);
      } else {
        answer_text(tools_, encoder, exchange, path == "/v1/chat/completions");
      }
    } catch (const ApiError&) {
      throw;
    } catch (const Error& error) {
      throw ApiError(400, error.what());
    } catch (const std::exception& error) {
      throw ApiError(500, error.what());
    }
  } catch (const ApiError& error) {
    metrics_.answered(error.status);
    exchange->respond(error_response(error, path));
  }
}

}  // namespace bloomery
