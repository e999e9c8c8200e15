#include "comm/gather_at.h"
#include "comm/rendezvous.h"

namespace bloomery {
namespace {

class ThreadHostGroup final : public HostGroup, public GathersAtOne {
 public:
  ThreadHostGroup(std::shared_ptr<ThreadGroup> group, int rank)
      : group_(std::move(group)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return group_->size(); }

  std::vector<std::string> gather(const std::string& topic, std::string mine,
                                  double seconds) override {
    return group_->gather(topic, next_number(topic), rank_, std::move(mine), seconds);
  }
  std::vector<std::string> gather_at(int root, const std::string& topic, std::string mine,
                                     double seconds) override {
    return group_->gather(topic, next_number(topic), rank_, std::move(mine), seconds, root);
  }

  void abort(const std::string& reason, bool mistake) noexcept override {
    group_->world()->fail(group_->world_rank(rank_), reason, mistake);
  }
  World* world() override { return group_->world().get(); }

 private:
  std::int64_t next_number(const std::string& topic) {
    const std::lock_guard lock(mutex_);
    return next_[topic]++;
  }

  const std::shared_ptr<ThreadGroup> group_;
  const int rank_;
  std::mutex mutex_;
  std::map<std::string, std::int64_t> next_;  // by topic
};

}  // namespace

std::unique_ptr<HostGroup> make_thread_host_group(std::shared_ptr<ThreadGroup> group, int rank) {
  return std::make_unique<ThreadHostGroup>(std::move(group), rank);
}

}  // namespace bloomery
