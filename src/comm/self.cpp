#include "comm/communicator.h"

namespace bloomery {
namespace {

class SelfCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_reduce(View, Reduce, Stream&) override {}
  void all_gather(ConstView part, View whole, Stream& stream) override {
    copy(part, whole, stream);
  }
  void reduce_scatter(ConstView whole, View part, Reduce, Stream& stream) override {
    copy(whole, part, stream);
  }
  void broadcast(View, int, Stream&) override {}
  void all_to_all(ConstView out, View in, const Counts&, Stream& stream) override {
    copy(out, in, stream);
  }
  // Messages to oneself, matched in order.
  void exchange(std::span<const Transfer> transfers, Stream& stream) override {
    std::vector<Transfer> sends, receives;
    for (const Transfer& transfer : transfers) {
      check(transfer.peer == 0, "exchange with rank ", transfer.peer, " of 1");
      (transfer.kind == Transfer::Kind::send ? sends : receives).push_back(transfer);
    }
    check(sends.size() == receives.size(), "exchange of one rank: ", sends.size(), " sends and ",
          receives.size(), " receives");
    for (std::size_t i = 0; i < sends.size(); ++i) {
      copy(sends[i].data, receives[i].data, stream);
    }
  }
  std::unique_ptr<Communicator> split(int, int) override { return make_self_communicator(); }
  HostGroup& host() override { return *host_; }

 private:
  static void copy(ConstView from, View to, Stream& stream) {
    check(from.bytes() == to.bytes(), "collective of one rank: sizes ", from.shape, " and ",
          to.shape, " differ");
    if (from.data != to.data) {
      stream.copy(to.data, from.data, from.bytes());
    }
  }

  const std::unique_ptr<HostGroup> host_ = make_self_host_group();
};

}  // namespace

std::unique_ptr<Communicator> make_self_communicator() {
  return std::make_unique<SelfCommunicator>();
}

}  // namespace bloomery
