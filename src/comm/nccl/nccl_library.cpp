#include "comm/nccl/nccl_library.h"

#include "base/library.h"

namespace bloomery {
namespace {

template <class Function>
void find(const Library& library, const char* name, Function*& function) {
  function = library.function<Function>(name);
  check(function != nullptr, library.name(), " has no ", name, ": install NCCL 2.28 or newer");
}

}  // namespace

std::shared_ptr<const NcclLibrary> NcclLibrary::open(const std::vector<std::string>& names) {
  const Library library = Library::open(names);
  if (!library) {
    return nullptr;
  }
  auto nccl = std::make_shared<NcclLibrary>();
  find(library, "ncclGetVersion", nccl->get_version);
  find(library, "ncclGetErrorString", nccl->error_text);
  find(library, "ncclGetUniqueId", nccl->make_id);
  find(library, "ncclCommInitRankConfig", nccl->init);
  find(library, "ncclCommGetAsyncError", nccl->async_error);
  find(library, "ncclCommDestroy", nccl->destroy);
  find(library, "ncclCommAbort", nccl->abort);
  find(library, "ncclAllReduce", nccl->all_reduce);
  find(library, "ncclAllGather", nccl->all_gather);
  find(library, "ncclReduceScatter", nccl->reduce_scatter);
  find(library, "ncclBroadcast", nccl->broadcast);
  find(library, "ncclSend", nccl->send);
  find(library, "ncclRecv", nccl->receive);
  find(library, "ncclGroupStart", nccl->group_start);
  find(library, "ncclGroupEnd", nccl->group_end);
  return nccl;
}

int NcclLibrary::number() const {
  int number = 0;
  check(get_version(&number), "ncclGetVersion");
  return number;
}

void NcclLibrary::check(int result, const char* call) const {
  if (result != 0) {
    throw std::runtime_error(
        concat(call, " failed: ", error_text(result), "; NCCL_DEBUG=WARN shows details"));
  }
}

int NcclLibrary::type(DType dtype) {
  switch (dtype) {
    case DType::uint8:
      return 1;
    case DType::int32:
      return 2;
    case DType::int64:
      return 4;
    case DType::fp16:
      return 6;
    case DType::fp32:
      return 7;
    case DType::fp64:
      return 8;
    case DType::bf16:
      return 9;
  }
  throw Error(concat("NCCL has no type ", dtype));
}

int NcclLibrary::operation(Reduce reduce) { return reduce == Reduce::sum ? 0 : 2; }

}  // namespace bloomery
