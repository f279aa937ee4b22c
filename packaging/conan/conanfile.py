import os

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, get, rmdir

required_conan_version = ">=2.0"


class AllstopConan(ConanFile):
    name = "allstop"
    description = "One stop flag and one stop record for all the threads of a program"
    license = "MIT"
    homepage = "https://www.npmjs.com/package/allstop"
    topics = ("threads", "cancellation", "coordinator", "node-addon")
    package_type = "static-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"fPIC": [True, False]}
    default_options = {"fPIC": True}
    implements = ["auto_shared_fpic"]

    def layout(self):
        cmake_layout(self, src_folder="src")

    def validate(self):
        check_min_cppstd(self, 17)

    def source(self):
        folder = os.environ.get("ALLSTOP_SOURCE")  # a checkout or an unpacked tarball
        if folder is None:
            get(self, **self.conan_data["sources"][self.version], strip_root=True)
            return
        for part in ("CMakeLists.txt", "LICENSE", "native/*"):
            copy(self, part, folder, self.source_folder)

    def generate(self):
        CMakeToolchain(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()
        # Conan writes these itself.
        rmdir(self, os.path.join(self.package_folder, "lib", "cmake"))
        rmdir(self, os.path.join(self.package_folder, "lib", "pkgconfig"))

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "allstop")
        library = self.cpp_info.components["allstop"]
        library.set_property("cmake_target_name", "allstop::allstop")
        library.libs = ["allstop"]
        library.defines = ["ALLSTOP_LINKED"]
        if self.settings.os in ("Linux", "FreeBSD"):
            library.system_libs = ["pthread", "dl"]
        headers = self.cpp_info.components["headers"]
        headers.set_property("cmake_target_name", "allstop::headers")
