#include "comm/nccl/nccl.h"

#include <algorithm>
#include <cstdlib>

#include "comm/call_checks.h"
#include "comm/nccl/nccl_handle.h"
#include "comm/reduce.h"
#include "device/op_clock.h"

namespace bloomery {
namespace {

constexpr std::size_t kInRankOrder = 16 << 10;  // bytes
constexpr int kSharedGpus = 2'30'00;            // the version since which ranks may share a GPU

void reduce_in_rank_order(const Tensor& all, View to, Reduce reduce, int size, Stream& stream) {
  RankReduce work{.dtype = to.dtype, .count = to.numel(), .reduce = reduce};
  for (int rank = 0; rank < size; ++rank) {
    work.inputs[static_cast<std::size_t>(work.num_inputs++)] =
        offset(static_cast<const void*>(all.data()), to.numel() * rank, to.dtype);
  }
  work.outputs[static_cast<std::size_t>(work.num_outputs++)] = to.data;
  launch(stream, work);
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(std::shared_ptr<const NcclLibrary> nccl, std::unique_ptr<Communicator> control)
      : nccl_(std::move(nccl)), control_(std::move(control)), handle_(nccl_, control_->host()) {}

  int rank() const override { return control_->rank(); }
  int size() const override { return control_->size(); }
  HostGroup& host() override { return control_->host(); }

  void all_reduce(View data, Reduce reduce, Stream& stream) override {
    refuse("all_reduce", reduce_problem(data.dtype));
    perform("all_reduce", stream, [&] {
      if (in_rank_order(data, reduce)) {
        const Tensor all = Tensor::empty(stream, data.dtype, {data.numel() * size()});
        gather_now(data, all.data(), stream);
        return reduce_in_rank_order(all, data, reduce, size(), stream);
      }
      handle_.call("ncclAllReduce", [&](Comm comm) {
        return nccl_->all_reduce(data.data, data.data, count(data), NcclLibrary::type(data.dtype),
                                 NcclLibrary::operation(reduce), comm, stream.native());
      });
    });
  }

  void all_gather(ConstView part, View whole, Stream& stream) override {
    refuse("all_gather", all_gather_problem(part, whole, rank(), size()));
    perform("all_gather", stream, [&] { gather_now(part, whole.data, stream); });
  }

  void reduce_scatter(ConstView whole, View part, Reduce reduce, Stream& stream) override {
    refuse("reduce_scatter", reduce_scatter_problem(whole, part, rank(), size()));
    perform("reduce_scatter", stream, [&] {
      if (in_rank_order(whole, reduce)) {
        const Tensor all = Tensor::empty(stream, part.dtype, {part.numel() * size()});
        scatter_now(whole, part.numel(), all.data(), stream);
        return reduce_in_rank_order(all, part, reduce, size(), stream);
      }
      handle_.call("ncclReduceScatter", [&](Comm comm) {
        return nccl_->reduce_scatter(whole.data, part.data, count(part),
                                     NcclLibrary::type(part.dtype), NcclLibrary::operation(reduce),
                                     comm, stream.native());
      });
    });
  }

  void broadcast(View data, int root, Stream& stream) override {
    refuse("broadcast", root_problem(root, size()));
    perform("broadcast", stream, [&] {
      handle_.call("ncclBroadcast", [&](Comm comm) {
        return nccl_->broadcast(data.data, data.data, count(data), NcclLibrary::type(data.dtype),
                                root, comm, stream.native());
      });
    });
  }

  void all_to_all(ConstView out, View in, const Counts& counts, Stream& stream) override {
    refuse("all_to_all", all_to_all_problem(out, in, counts, size()));
    const std::int64_t row = row_elements(out.shape);
    perform("all_to_all", stream, [&] {
      std::int64_t out_row = 0, in_row = 0;
      std::vector<Message> messages;
      for (int peer = 0; peer < size(); ++peer) {
        const auto place = static_cast<std::size_t>(peer);
        messages.push_back({peer, out.dtype, offset(out.data, out_row * row, out.dtype), nullptr,
                            counts.out[place] * row});
        messages.push_back({peer, in.dtype, nullptr, offset(in.data, in_row * row, in.dtype),
                            counts.in[place] * row});
        out_row += counts.out[place];
        in_row += counts.in[place];
      }
      move_now(messages, stream);
    });
  }

  void exchange(std::span<const Transfer> transfers, Stream& stream) override {
    for (const Transfer& each : transfers) {
      refuse("exchange", root_problem(each.peer, size()));
    }
    perform("exchange", stream, [&] {
      std::vector<Message> messages;
      for (const Transfer& each : transfers) {
        const bool sends = each.kind == Transfer::Kind::send;
        messages.push_back({each.peer, each.data.dtype, sends ? each.data.data : nullptr,
                            sends ? nullptr : each.data.data, each.data.numel()});
      }
      move_now(messages, stream);
    });
  }

  std::unique_ptr<Communicator> split(int color, int key) override {
    return std::make_unique<NcclCommunicator>(nccl_, control_->split(color, key));
  }

 private:
  using Comm = NcclLibrary::Comm;
  struct Message {  // from one of the two places, or to the other
    int peer;
    DType dtype;
    const void* from;
    void* to;
    std::int64_t elements;
  };

  static std::size_t count(ConstView data) { return static_cast<std::size_t>(data.numel()); }

  // The largest number of NCCL forgets what is none.
  bool in_rank_order(ConstView data, Reduce reduce) const {
    return size() <= RankReduce::kMaxRanks &&
           (reduce == Reduce::max || data.bytes() <= kInRankOrder);
  }

  void refuse(const char* name, const std::string& problem) {
    if (!problem.empty()) {
      const std::string text = concat(name, ": ", problem);
      host().abort(text);
      throw Error(text);
    }
  }

  template <class Work>
  void perform(const char* name, Stream& stream, const Work& work) {
    const OpScope scope(stream, name, OpKind::communication);
    if (!stream.abstract()) {
      check(stream.on_cuda(), "NCCL moves tensors of GPUs: give --distributed-backend tcp");
      timed_launch(stream, work);
    }
  }

  void gather_now(ConstView part, void* whole, Stream& stream) {
    handle_.call("ncclAllGather", [&](Comm comm) {
      return nccl_->all_gather(part.data, whole, count(part), NcclLibrary::type(part.dtype), comm,
                               stream.native());
    });
  }

  // Every rank's share of `whole` goes to it; `all` has what came, in rank order.
  void scatter_now(ConstView whole, std::int64_t share, void* all, Stream& stream) {
    std::vector<Message> messages;
    for (int peer = 0; peer < size(); ++peer) {
      messages.push_back(
          {peer, whole.dtype, offset(whole.data, share * peer, whole.dtype), nullptr, share});
      messages.push_back(
          {peer, whole.dtype, nullptr, offset(all, share * peer, whole.dtype), share});
    }
    move_now(messages, stream);
  }

  // Together. A group that was begun is ended whatever happens.
  void move_now(const std::vector<Message>& messages, Stream& stream) {
    handle_.call("ncclGroupEnd", [&](Comm comm) {
      int result = nccl_->group_start();
      if (NcclLibrary::is_error(result)) {
        return result;
      }
      for (const Message& m : messages) {
        if (!NcclLibrary::is_error(result) && m.elements > 0) {
          const int type = NcclLibrary::type(m.dtype);
          const auto elements = static_cast<std::size_t>(m.elements);
          result = m.from != nullptr
                       ? nccl_->send(m.from, elements, type, m.peer, comm, stream.native())
                       : nccl_->receive(m.to, elements, type, m.peer, comm, stream.native());
        }
      }
      const int ended = nccl_->group_end();
      return NcclLibrary::is_error(result) ? result : ended;
    });
  }

  const std::shared_ptr<const NcclLibrary> nccl_;
  const std::unique_ptr<Communicator> control_;  // the same ranks on another transport
  NcclHandle handle_;
};

}  // namespace

std::string nccl_problem(HostGroup& host, const DeviceOptions& device) {
  std::string mine;
  const std::shared_ptr<const NcclLibrary> nccl = NcclLibrary::open();
  if (device.kind != DeviceKind::cuda) {
    mine = "tensors are not on a GPU";
  } else if (nccl == nullptr) {
    mine = "libnccl.so.2 was not found: install NCCL, or add its folder to LD_LIBRARY_PATH";
  }
  for (const std::string& each : host.gather("lack of NCCL", mine)) {
    if (!each.empty()) {
      return each;
    }
  }
  const char* const asked = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  const bool shares =
      nccl->number() >= kSharedGpus && asked != nullptr && std::string_view(asked) == "1";
  if (!host.any("GPUs of their own", !shares)) {
    return {};
  }
  const std::vector<std::string> gpus = host.gather("GPUs", device_identity(device.index));
  for (std::size_t rank = 1; rank < gpus.size(); ++rank) {
    const auto other =
        std::find(gpus.begin(), gpus.begin() + static_cast<std::ptrdiff_t>(rank), gpus[rank]) -
        gpus.begin();
    if (other < static_cast<std::ptrdiff_t>(rank)) {
      return concat("ranks ", other, " and ", rank, " share a GPU");
    }
  }
  return {};
}

std::unique_ptr<Communicator> over_nccl(std::unique_ptr<Communicator> control,
                                        const DeviceOptions& device) {
  if (control->size() == 1) {
    return control;
  }
  const std::string problem = nccl_problem(control->host(), device);
  check(problem.empty(), "--distributed-backend nccl: ", problem,
        "; or give --distributed-backend mpi or tcp");
  use_device(device);
  return std::make_unique<NcclCommunicator>(NcclLibrary::open(), std::move(control));
}

}  // namespace bloomery
