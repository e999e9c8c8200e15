#include "comm/communicator.h"

namespace bloomery {
namespace {

class AbstractHostGroup final : public HostGroup {
 public:
  AbstractHostGroup(int rank, int size) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::vector<std::string> gather(const std::string&, std::string mine, double) override {
    return std::vector<std::string>(static_cast<std::size_t>(size_), mine);
  }
  void abort(const std::string&, bool) noexcept override {}

 private:
  const int rank_, size_;
};

class AbstractCommunicator final : public Communicator {
 public:
  AbstractCommunicator(int rank, int size) : host_(rank, size) {}
  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  void all_reduce(View, Reduce, Stream& stream) override { nothing(stream); }
  void all_gather(ConstView, View, Stream& stream) override { nothing(stream); }
  void reduce_scatter(ConstView, View, Reduce, Stream& stream) override { nothing(stream); }
  void broadcast(View, int, Stream& stream) override { nothing(stream); }
  void all_to_all(ConstView, View, const Counts&, Stream& stream) override { nothing(stream); }
  void exchange(std::span<const Transfer>, Stream& stream) override { nothing(stream); }
  std::unique_ptr<Communicator> split(int, int) override {
    throw Error("a rank without others cannot know how they split: make the group itself");
  }
  HostGroup& host() override { return host_; }
  bool abstract() const override { return true; }

 private:
  static void nothing(const Stream& stream) {
    check(stream.abstract(), "ranks that do not exist can take part on an abstract device only");
  }

  AbstractHostGroup host_;
};

}  // namespace

std::unique_ptr<Communicator> make_abstract_communicator(int rank, int size) {
  return std::make_unique<AbstractCommunicator>(rank, size);
}

}  // namespace bloomery
