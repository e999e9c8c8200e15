#include "comm/wire_communicator.h"

#include <algorithm>
#include <cstring>
#include <deque>

#include "comm/call_checks.h"
#include "comm/split.h"
#include "comm/wire_group.h"
#include "device/op_clock.h"

namespace bloomery {
namespace {

using Name = WireCall::Name;

// Host memory for tensors of a GPU, while a call moves them.
class Staging {
 public:
  explicit Staging(Stream& stream) : stream_(stream) {}

  // The bytes on the host, which the stream has written.
  void* in(const void* data, std::size_t bytes) {
    void* const host = room(bytes);
    stream_.copy(host, data, bytes);
    return host;
  }
  void* room(std::size_t bytes) {
    memory_.push_back(
        std::make_unique<PinnedMemory>(DeviceKind::cuda, std::max<std::size_t>(bytes, 1)));
    return memory_.back()->data();
  }
  void ready() { stream_.synchronize(); }
  void out(void* data, const void* host, std::size_t bytes) { stream_.copy(data, host, bytes); }

 private:
  Stream& stream_;
  std::vector<std::unique_ptr<PinnedMemory>> memory_;
};

class WireCommunicator final : public Communicator {
 public:
  WireCommunicator(std::shared_ptr<WireWorld> world, std::uint32_t group, std::vector<int> members)
      : world_(std::move(world)),
        group_number_(group),
        host_(world_->make_host(concat(group, ":", members.front()), members)),
        group_(std::make_shared<WireGroup>(world_->wire, members, host_->rank())),
        next_send_(members.size()),
        next_receive_(members.size()) {}

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  HostGroup& host() override { return *host_; }

  void all_reduce(View data, Reduce reduce, Stream& stream) override {
    WireCall call = numbered(Name::all_reduce, data.dtype, data.numel());
    call.reduce = reduce;
    refuse("all_reduce", reduce_problem(data.dtype));
    perform("all_reduce", stream, [=](const WireGroup& group, Stream& on) {
      in_place(data.data, data.bytes(), on, [&](void* host) { group.all_reduce(call, host, on); });
    });
  }

  void all_gather(ConstView part, View whole, Stream& stream) override {
    const WireCall call = numbered(Name::all_gather, part.dtype, part.numel());
    refuse("all_gather", all_gather_problem(part, whole, rank(), size()));
    perform("all_gather", stream, [=](const WireGroup& group, Stream& on) {
      from_to(part.data, part.bytes(), whole.data, whole.bytes(), on,
              [&](const void* from, void* to) { group.all_gather(call, from, to); });
    });
  }

  void reduce_scatter(ConstView whole, View part, Reduce reduce, Stream& stream) override {
    WireCall call = numbered(Name::reduce_scatter, part.dtype, part.numel());
    call.reduce = reduce;
    refuse("reduce_scatter", reduce_scatter_problem(whole, part, rank(), size()));
    perform("reduce_scatter", stream, [=](const WireGroup& group, Stream& on) {
      from_to(whole.data, whole.bytes(), part.data, part.bytes(), on,
              [&](const void* from, void* to) { group.reduce_scatter(call, from, to, on); });
    });
  }

  void broadcast(View data, int root, Stream& stream) override {
    WireCall call = numbered(Name::broadcast, data.dtype, data.numel());
    call.root = root;
    refuse("broadcast", root_problem(root, size()));
    perform("broadcast", stream, [=](const WireGroup& group, Stream& on) {
      in_place(data.data, data.bytes(), on, [&](void* host) { group.broadcast(call, host); });
    });
  }

  void all_to_all(ConstView out, View in, const Counts& counts, Stream& stream) override {
    const std::int64_t row = row_elements(out.shape);
    const WireCall call = numbered(Name::all_to_all, out.dtype, row);
    refuse("all_to_all", all_to_all_problem(out, in, counts, size()));
    perform("all_to_all", stream, [=](const WireGroup& group, Stream& on) {
      from_to(out.data, out.bytes(), in.data, in.bytes(), on,
              [&](const void* from, void* to) { group.all_to_all(call, from, to, counts, row); });
    });
  }

  void exchange(std::span<const Transfer> transfers, Stream& stream) override {
    std::vector<WirePiece> pieces;
    std::deque<View> to_self, from_self;
    for (const Transfer& each : transfers) {
      refuse("exchange", root_problem(each.peer, size()));
      const bool sends = each.kind == Transfer::Kind::send;
      if (each.peer == rank()) {
        (sends ? to_self : from_self).push_back(each.data);
        continue;
      }
      std::uint64_t& number =
          (sends ? next_send_ : next_receive_)[static_cast<std::size_t>(each.peer)];
      WireCall call{.name = Name::exchange, .dtype = each.data.dtype, .count = each.data.numel()};
      call.group = group_number_;
      call.number = number++;
      pieces.push_back(
          {each.kind, group_->world_rank(each.peer), call, 0, each.data.data, each.data.bytes()});
    }
    refuse("exchange", to_self.size() == from_self.size()
                           ? ""
                           : concat("with itself: ", to_self.size(), " sends and ",
                                    from_self.size(), " receives"));
    for (std::size_t i = 0; i < to_self.size(); ++i) {
      refuse("exchange",
             to_self[i].bytes() == from_self[i].bytes() ? "" : "with itself: sizes differ");
      stream.copy(from_self[i].data, to_self[i].data, to_self[i].bytes());
    }
    perform("exchange", stream, [pieces = std::move(pieces)](const WireGroup& group, Stream& on) {
      exchange_now(group.wire(), pieces, on);
    });
  }

  std::unique_ptr<Communicator> split(int color, int key) override {
    SplitGroup group = split_group(*host_, group_->members(), color, key, world_->next_group);
    return std::make_unique<WireCommunicator>(world_, group.number, std::move(group.members));
  }

 private:
  using Work = std::function<void(const WireGroup&, Stream&)>;

  WireCall numbered(Name name, DType dtype, std::int64_t count) {
    WireCall call{.name = name, .dtype = dtype, .count = count};
    call.group = group_number_;
    call.number = next_call_++;
    return call;
  }

  // The others would wait for this rank.
  void refuse(const char* name, const std::string& problem) {
    if (!problem.empty()) {
      const std::string text = concat(name, ": ", problem);
      world_->world->fail(world_->rank, text);
      throw Error(text);
    }
  }

  void perform(const char* name, Stream& stream, Work work) {
    const OpScope scope(stream, name, OpKind::communication);
    if (stream.on_cuda()) {  // timed as a whole: waiting for the others is part of it
      return timed_launch(stream, [&] { work(*group_, stream); });
    }
    stream.submit([group = group_, &stream, work = std::move(work)] { work(*group, stream); },
                  [world = world_->world, rank = world_->rank] {
                    world->fail(rank, "it stopped with an exception of its own");
                  });
  }

  template <class Call>
  static void in_place(void* data, std::size_t bytes, Stream& stream, const Call& call) {
    if (!stream.on_cuda()) {
      return call(data);
    }
    Staging staging(stream);
    void* const host = staging.in(data, bytes);
    staging.ready();
    call(host);
    staging.out(data, host, bytes);
    staging.ready();
  }

  template <class Call>
  static void from_to(const void* from, std::size_t from_bytes, void* to, std::size_t to_bytes,
                      Stream& stream, const Call& call) {
    if (!stream.on_cuda()) {
      return call(from, to);
    }
    Staging staging(stream);
    const void* const host = staging.in(from, from_bytes);
    void* const result = staging.room(to_bytes);
    staging.ready();
    call(host, result);
    staging.out(to, result, to_bytes);
    staging.ready();
  }

  static void exchange_now(Wire& wire, const std::vector<WirePiece>& pieces, Stream& stream) {
    if (!stream.on_cuda()) {
      return wire.move(pieces);
    }
    Staging staging(stream);
    std::vector<WirePiece> staged = pieces;
    for (WirePiece& piece : staged) {
      piece.data = piece.kind == Transfer::Kind::send ? staging.in(piece.data, piece.bytes)
                                                      : staging.room(piece.bytes);
    }
    staging.ready();
    wire.move(staged);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i].kind == Transfer::Kind::receive) {
        staging.out(pieces[i].data, staged[i].data, pieces[i].bytes);
      }
    }
    staging.ready();
  }

  const std::shared_ptr<WireWorld> world_;
  const std::uint32_t group_number_;
  const std::unique_ptr<HostGroup> host_;
  const std::shared_ptr<const WireGroup> group_;
  std::uint64_t next_call_ = 0;
  std::vector<std::uint64_t> next_send_, next_receive_;  // per peer
};

}  // namespace

std::unique_ptr<Communicator> make_wire_communicator(std::shared_ptr<WireWorld> world,
                                                     std::uint32_t group,
                                                     std::vector<int> members) {
  return std::make_unique<WireCommunicator>(std::move(world), group, std::move(members));
}

}  // namespace bloomery
