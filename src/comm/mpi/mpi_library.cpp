#include "comm/mpi/mpi_library.h"

#include <cstring>
#include <vector>

#include "base/error.h"

namespace bloomery {
namespace {

constexpr int kThreadMultiple = 3;

// What mpi.h of Open MPI says.
struct OpenMpi {
  using Comm = void*;
  using Type = void*;
  using Request = void*;
  static constexpr int kTagUpperBound = 0;
  static Comm world(const Library& library) { return library.find("ompi_mpi_comm_world"); }
  static Type byte(const Library& library) { return library.find("ompi_mpi_byte"); }
  static void* ignored_status() { return nullptr; }
  static std::vector<std::string> names() { return {"libmpi.so.40", "libmpi.so"}; }
  static constexpr const char* kMark = "ompi_mpi_comm_world";
};

// What mpi.h of MPICH says.
struct Mpich {
  using Comm = int;
  using Type = int;
  using Request = int;
  static constexpr int kTagUpperBound = 0x64400001;
  static Comm world(const Library&) { return 0x44000000; }
  static Type byte(const Library&) { return 0x4c00010d; }
  static void* ignored_status() { return reinterpret_cast<void*>(1); }
  static std::vector<std::string> names() {
    return {"libmpi.so.12", "libmpich.so.12", "libmpi_gnu.so.12"};
  }
  static constexpr const char* kMark = "MPI_Isend";
};

template <class Interface>
class OpenedMpi final : public MpiLibrary {
 public:
  explicit OpenedMpi(const Library& library)
      : name_(library.name()), world_(Interface::world(library)), byte_(Interface::byte(library)) {
    find(library, "MPI_Init_thread", init_);
    find(library, "MPI_Comm_rank", comm_rank_);
    find(library, "MPI_Comm_size", comm_size_);
    find(library, "MPI_Comm_get_attr", get_attribute_);
    find(library, "MPI_Isend", send_);
    find(library, "MPI_Irecv", receive_);
    find(library, "MPI_Test", test_);
    find(library, "MPI_Finalize", finalize_);
    int given = 0;  // calls are made one at a time, whatever it says
    good(init_(nullptr, nullptr, kThreadMultiple, &given), "MPI_Init_thread");
  }

  const std::string& name() const override { return name_; }

  int rank() override {
    int rank = 0;
    good(comm_rank_(world_, &rank), "MPI_Comm_rank");
    return rank;
  }
  int size() override {
    int size = 0;
    good(comm_size_(world_, &size), "MPI_Comm_size");
    return size;
  }
  int largest_tag() override {
    constexpr int kAlways = 32767;
    int* value = nullptr;
    int found = 0;
    good(get_attribute_(world_, Interface::kTagUpperBound, &value, &found), "MPI_Comm_get_attr");
    return found != 0 && value != nullptr ? *value : kAlways;
  }
  Request send(const void* data, std::size_t bytes, int peer, int tag) override {
    typename Interface::Request request{};
    good(send_(data, static_cast<int>(bytes), byte_, peer, tag, world_, &request), "MPI_Isend");
    return pack(request);
  }
  Request receive(void* data, std::size_t bytes, int peer, int tag) override {
    typename Interface::Request request{};
    good(receive_(data, static_cast<int>(bytes), byte_, peer, tag, world_, &request), "MPI_Irecv");
    return pack(request);
  }
  bool done(Request& packed) override {
    typename Interface::Request request{};
    std::memcpy(&request, &packed, sizeof request);
    int is_done = 0;
    good(test_(&request, &is_done, Interface::ignored_status()), "MPI_Test");
    packed = pack(request);
    return is_done != 0;
  }
  void finalize() override { finalize_(); }

 private:
  template <class Function>
  static void find(const Library& library, const char* name, Function*& function) {
    function = library.function<Function>(name);
    check(function != nullptr, library.name(), " has no ", name, ": it is no library of MPI");
  }
  static Request pack(typename Interface::Request request) {
    Request packed = 0;
    std::memcpy(&packed, &request, sizeof request);
    return packed;
  }
  static void good(int code, const char* call) {
    check(code == 0, call, " failed with code ", code);
  }

  const std::string name_;
  const typename Interface::Comm world_;
  const typename Interface::Type byte_;
  using Comm = typename Interface::Comm;
  using Type = typename Interface::Type;
  int (*init_)(int*, char***, int, int*) = nullptr;
  int (*comm_rank_)(Comm, int*) = nullptr;
  int (*comm_size_)(Comm, int*) = nullptr;
  int (*get_attribute_)(Comm, int, void*, int*) = nullptr;
  int (*send_)(const void*, int, Type, int, int, Comm, typename Interface::Request*) = nullptr;
  int (*receive_)(void*, int, Type, int, int, Comm, typename Interface::Request*) = nullptr;
  int (*test_)(typename Interface::Request*, int*, void*) = nullptr;
  int (*finalize_)() = nullptr;
};

template <class Interface>
std::shared_ptr<MpiLibrary> open_as() {
  // Open MPI's parts, which it opens itself, look for its names.
  const Library library = Library::open(Interface::names(), Library::Names::global);
  return library && library.find(Interface::kMark) != nullptr
             ? std::make_shared<OpenedMpi<Interface>>(library)
             : nullptr;
}

}  // namespace

std::shared_ptr<MpiLibrary> MpiLibrary::open(Abi abi) {
  return abi == Abi::open_mpi ? open_as<OpenMpi>() : open_as<Mpich>();
}

}  // namespace bloomery
