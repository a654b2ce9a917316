import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.rest.RESTCatalog;

/** Appends one data file to a table and prints OK, or the class of what was thrown. Nobody reads that file. */
public class AppendOnce {
  public static void main(String[] arguments) throws Exception {
    try (RESTCatalog catalog = new RESTCatalog()) {
      catalog.setConf(new Configuration());
      catalog.initialize("anabranch", Map.of("uri", arguments[0], "warehouse", "lake"));
      Table table = catalog.loadTable(TableIdentifier.of(arguments[1], arguments[2]));
      DataFile file =
          DataFiles.builder(PartitionSpec.unpartitioned())
              .withPath(table.location() + "/data/once.parquet")
              .withFormat("parquet")
              .withFileSizeInBytes(10)
              .withRecordCount(1)
              .build();
      try {
        table.newAppend().appendFile(file).commit();
        System.out.println("OK");
      } catch (RuntimeException failure) {
        failure.printStackTrace();
        System.out.println(failure.getClass().getSimpleName());
      }
    }
  }
}
