#include "serve/http_library.h"

#include "base/error.h"
#include "base/library.h"

namespace bloomery {

HttpLibrary::HttpLibrary() {
  const Library library = Library::open({"libmicrohttpd.so.12", "libmicrohttpd.so"});
  check(static_cast<bool>(library),
        "libmicrohttpd, which serving needs, cannot be opened: install it (on Debian and Ubuntu "
        "apt-get install libmicrohttpd12, or libmicrohttpd12t64)");
  const auto find = [&](auto& function, const char* name) {
    function =
        library.function<std::remove_pointer_t<std::remove_reference_t<decltype(function)>>>(name);
    check(function != nullptr, library.name(), " has no ", name, ": its version is not supported");
  };
  find(start_daemon, "MHD_start_daemon");
  find(stop_daemon, "MHD_stop_daemon");
  find(quiesce_daemon, "MHD_quiesce_daemon");
  find(get_daemon_info, "MHD_get_daemon_info");
  find(get_connection_info, "MHD_get_connection_info");
  find(lookup_connection_value, "MHD_lookup_connection_value");
  find(create_response_from_buffer, "MHD_create_response_from_buffer");
  find(create_response_from_callback, "MHD_create_response_from_callback");
  find(add_response_header, "MHD_add_response_header");
  find(queue_response, "MHD_queue_response");
  find(destroy_response, "MHD_destroy_response");
  find(suspend_connection, "MHD_suspend_connection");
  find(resume_connection, "MHD_resume_connection");
}

}  // namespace bloomery
