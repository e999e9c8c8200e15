#include "apps/serve/serve.h"

#include <thread>

#include "apps/common/model_command.h"
#include "apps/serve/engine_room.h"
#include "apps/serve/options.h"
#include "base/stop_signals.h"
#include "comm/world.h"

namespace bloomery {
namespace {

std::string shown_address(const ServeCommand& command, int port) {
  const bool ipv6 = command.host.find(':') != std::string::npos;
  return concat("http://", ipv6 ? "[" : "", command.host, ipv6 ? "]" : "", ":", port);
}

// Waits for a signal, or for the end of another rank, then lets the engine finish, for as long as
// it may take.
class Stopper {
 public:
  // `world` is null where there is one rank.
  Stopper(Engine& engine, Service& service, HttpServer& server, const World* world)
      : thread_([&, world] {
          while (!StopSignals::came() && !end_ && !(world != nullptr && world->failed())) {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
          }
          service.drain();
          server.close();
          engine.close();
        }) {}
  ~Stopper() {
    end_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> end_ = false;
  std::thread thread_;
};

std::string served_name(const ServeCommand& command) {
  if (!command.name.empty()) {
    return command.name;
  }
  const std::string folder = std::filesystem::absolute(command.model.load).lexically_normal();
  return std::filesystem::path(folder.back() == '/' ? folder.substr(0, folder.size() - 1) : folder)
      .filename()
      .string();
}

void serve_model(const ServeCommand& command, LoadedModel& model, std::ostream& out) {
  const std::string name = served_name(command);
  const ServedModel served(model, name, command.chat_template);
  Engine engine(model.model(), model.stream(), model.mesh(), model.tokenizer(),
                engine_options(command, model));
  // Memory that is not there is missed before anybody asks.
  run_prompts(engine, {{.prompt = {0}, .max_tokens = 1}});
  Service service(served, engine, command.service());
  const auto server = make_http_server(
      command.host, static_cast<int>(command.port), command.limits(),
      [&](const std::shared_ptr<HttpExchange>& exchange) { service.handle(exchange); });
  out << name << " at " << shown_address(command, server->port()) << std::endl;
  World* const world = model.mesh().host().world();
  {
    const Stopper stopper(engine, service, *server, world);
    engine.run();
  }
  server->stop(std::chrono::seconds(5));
  if (world != nullptr) {
    world->check_failed();
  }
}

constexpr const char* kServeUsage =
    "usage: bloomery serve --load DIR [--port N] [OPTIONS]\n\n"
    "Serves OpenAI's /v1/completions and /v1/chat/completions, Megatron's PUT /api, /health, "
    "/metrics, and a chat page at /. Continuous batching; every answer equals that of a lone "
    "request. SIGTERM drains requests in flight, then exits.\n\n"
    "example:\n  bloomery serve --load run/tuned --port 8000\n";

int run_serve(const ServeCommand& command, const ModelRanks& ranks, std::ostream& out) {
  if (ranks.is_first()) {
    require_free_port(command.host, static_cast<int>(command.port));
  }
  const StopSignals signals("drains requests in flight, then exits");
  return ranks.with_first(command, [&](LoadedModel& model) {
    serve_model(command, model, out);
    return 0;
  });
}

}  // namespace

int serve(const Arguments& arguments, std::ostream& out) {
  return run_model_command(arguments, out, kServeUsage, ServeCommand(), run_serve);
}

int run_text_generation_server(const Arguments& arguments, std::ostream& out) {
  ServeCommand defaults;
  defaults.port = 5000;  // Flask's, which Megatron's clients name
  return run_model_command(arguments, out, kServeUsage, defaults, run_serve);
}

}  // namespace bloomery
