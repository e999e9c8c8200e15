#include "comm/watch/recorded.h"

#include <numeric>
#include <sstream>

#include "comm/gather_at.h"

namespace bloomery {
namespace {

using Call = FlightRecorder::Call;

const char* name(Reduce reduce) { return reduce == Reduce::sum ? "sum" : "max"; }

class RecordedHostGroup final : public HostGroup, public GathersAtOne {
 public:
  RecordedHostGroup(HostGroup& inner, FlightRecorder& recorder, int group)
      : inner_(inner), recorder_(recorder), group_(group) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }

  std::vector<std::string> gather(const std::string& topic, std::string mine,
                                  double seconds) override {
    return recorded(topic, [&] { return inner_.gather(topic, std::move(mine), seconds); });
  }
  std::vector<std::string> gather_at(int root, const std::string& topic, std::string mine,
                                     double seconds) override {
    return recorded(
        topic, [&] { return bloomery::gather_at(inner_, root, topic, std::move(mine), seconds); });
  }

  void abort(const std::string& reason, bool mistake) noexcept override {
    inner_.abort(reason, mistake);
  }
  World* world() override { return inner_.world(); }

 private:
  std::vector<std::string> recorded(const std::string& topic, const auto& call) {
    const FlightRecorder::Ticket ticket =
        recorder_.called(group_, {.name = topic, .detail = "(hosts)", .numbered = false});
    recorder_.started(ticket);
    std::vector<std::string> all = call();
    recorder_.done(ticket);
    return all;
  }

  HostGroup& inner_;
  FlightRecorder& recorder_;
  const int group_;
};

class RecordedCommunicator final : public Communicator {
 public:
  RecordedCommunicator(std::unique_ptr<Communicator> inner, FlightRecorder& recorder, int group)
      : inner_(std::move(inner)),
        recorder_(recorder),
        group_(group),
        host_(inner_->host(), recorder, group) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  HostGroup& host() override { return host_; }
  bool abstract() const override { return inner_->abstract(); }

  void all_reduce(View data, Reduce reduce, Stream& stream) override {
    record(
        {.name = "all_reduce", .detail = name(reduce), .dtype = data.dtype, .count = data.numel()},
        stream, [&] { inner_->all_reduce(data, reduce, stream); });
  }
  void all_gather(ConstView part, View whole, Stream& stream) override {
    record({.name = "all_gather", .dtype = part.dtype, .count = part.numel()}, stream,
           [&] { inner_->all_gather(part, whole, stream); });
  }
  void reduce_scatter(ConstView whole, View part, Reduce reduce, Stream& stream) override {
    record({.name = "reduce_scatter",
            .detail = name(reduce),
            .dtype = part.dtype,
            .count = part.numel()},
           stream, [&] { inner_->reduce_scatter(whole, part, reduce, stream); });
  }
  void broadcast(View data, int root, Stream& stream) override {
    const bool exists = root >= 0 && root < size();  // the call will say that there is none
    record({.name = "broadcast",
            .root = exists ? root : -1,
            .dtype = data.dtype,
            .count = data.numel()},
           stream, [&] { inner_->broadcast(data, root, stream); });
  }
  void all_to_all(ConstView out, View in, const Counts& counts, Stream& stream) override {
    record({.name = "all_to_all", .dtype = out.dtype, .count = out.numel()}, stream,
           [&] { inner_->all_to_all(out, in, counts, stream); });
  }
  void exchange(std::span<const Transfer> transfers, Stream& stream) override {
    Call call{.name = "exchange", .count = 0, .transfers = transfers, .numbered = false};
    for (const Transfer& each : transfers) {
      call.dtype = each.data.dtype;
      call.count += each.data.numel();
      if (each.peer < 0 || each.peer >= size()) {
        call.transfers = {};
      }
    }
    record(call, stream, [&] { inner_->exchange(transfers, stream); });
  }

  std::unique_ptr<Communicator> split(int color, int key) override {
    std::unique_ptr<Communicator> part = inner_->split(color, key);
    std::uint32_t id = 0;
    std::vector<int> members;
    for (const std::string& said :
         part->host().gather("members", concat(recorder_.rank(), " ", recorder_.next_group_id()))) {
      std::istringstream in(said);
      std::uint32_t next = 0;
      in >> members.emplace_back() >> next;
      id = std::max(id, next);
    }
    const int group = recorder_.add_group(concat("group ", id), std::move(members), id);
    return std::make_unique<RecordedCommunicator>(std::move(part), recorder_, group);
  }

  FlightRecorder& recorder() { return recorder_; }
  void set_name(const std::string& name) { recorder_.rename_group(group_, name); }

 private:
  template <class Work>
  void record(Call call, Stream& stream, const Work& work) {
    if (stream.abstract()) {
      return work();
    }
    call.stream = &stream;
    const FlightRecorder::Ticket ticket = recorder_.called(group_, call);
    if (stream.on_cuda()) {
      recorder_.starts_on(ticket, stream);
      work();
      recorder_.ends_on(ticket, stream);
    } else {
      stream.submit([to = &recorder_, ticket] { to->started(ticket); });
      work();
      stream.submit([to = &recorder_, ticket] { to->done(ticket); });
    }
  }

  const std::unique_ptr<Communicator> inner_;
  FlightRecorder& recorder_;
  const int group_;
  RecordedHostGroup host_;
};

}  // namespace

std::unique_ptr<Communicator> record_calls(std::unique_ptr<Communicator> world,
                                           FlightRecorder& recorder) {
  std::vector<int> all(static_cast<std::size_t>(world->size()));
  std::iota(all.begin(), all.end(), 0);
  const int group = recorder.add_group("all ranks", std::move(all), recorder.next_group_id());
  return std::make_unique<RecordedCommunicator>(std::move(world), recorder, group);
}

FlightRecorder* recorder_of(Communicator& group) {
  auto* const recorded = dynamic_cast<RecordedCommunicator*>(&group);
  return recorded == nullptr ? nullptr : &recorded->recorder();
}

void name_group(Communicator& group, const std::string& name) {
  if (auto* const recorded = dynamic_cast<RecordedCommunicator*>(&group)) {
    recorded->set_name(name);
  }
}

}  // namespace bloomery
