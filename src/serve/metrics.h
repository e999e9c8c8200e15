// What a server did, as Prometheus reads it; the names are those of vLLM, whose dashboards then
// work.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "generate/engine.h"

namespace bloomery {

class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds)
      : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}
  void add(double value);
  void print(std::string& out, const std::string& name, const std::string& label) const;

 private:
  std::vector<double> bounds_;
  std::vector<std::int64_t> counts_;  // the last: above all bounds
  double sum_ = 0;
};

class ServerMetrics {
 public:
  ServerMetrics();

  // Of one answered sequence or request; times in seconds.
  void first_token(double seconds);
  void between_tokens(double seconds);
  void request_done(double seconds, std::int64_t prompt_tokens, std::int64_t new_tokens);
  void sequence_ended(const std::string& reason);
  void answered(int status);

  std::string text(const std::string& model, const Engine& engine) const;

 private:
  mutable std::mutex mutex_;
  Histogram first_token_, between_tokens_, request_, prompt_, generated_;
  std::map<std::string, std::int64_t> ended_;
  std::map<int, std::int64_t> answers_;
};

}  // namespace bloomery
