"""Second derivatives: Hessians and their products with vectors."""
